"""The paper (Klenske and Hennig, JMLR 2016): its equations as data, its experiments as model files."""
