"""Appendix B, Gradients and Hessians of Dynamics Functions, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

_BELL = "exp(-(x - c[i])**2 / (2*lam**2))"

NETWORK = (
    Equation(
        id="B.1.network",
        section="B.1",
        title="network with shifted inputs",
        line=1917,
        latex=r"f(x) = \sum_{i=1}^F v_i \s(w_i(x-b_i))",
        machine="total(1, F, lambda i: v[i] * sigma(w[i]*(x - b[i])))",
    ),
    Equation(
        id="B.1.logistic",
        section="B.1",
        title="logistic function",
        line=1917,
        latex=r"\s(a) = \frac{1}{1 + e^{-a}}",
        machine="1 / (1 + exp(-a))",
        introduces="sigma",
    ),
    Equation(
        id="B.1.slope",
        section="B.1",
        title="slope of the logistic function",
        line=1921,
        latex=r"\frac{\de}{\de a} \s(a) = \s(a)(1-\s(a))",
        machine="sigma(a)*(1 - sigma(a))",
    ),
    Equation(
        id="B.1.curvature",
        section="B.1",
        title="curvature of the logistic function",
        line=1922,
        latex=r"""\frac{\de^2}{\de a^2} \s(a) =
    \s(a)\left(1-\s(a)\left(3-2\s(a)\right)\right)""",
        machine="sigma(a)*(1 - sigma(a)*(3 - 2*sigma(a)))",
    ),
    Equation(
        id="B.1.gradient-x",
        section="B.1",
        title="network: gradient by x",
        line=1930,
        latex=r"\sum_{i=1}^F v_i w_i \s(w_i(x-b_i))(1-\s(w_i(x-b_i)))",
        machine="total(1, F, lambda i: v[i]*w[i]*sigma(w[i]*(x - b[i]))*(1 - sigma(w[i]*(x - b[i]))))",
    ),
    Equation(
        id="B.1.gradient-v",
        section="B.1",
        title="network: gradient by v",
        line=1931,
        latex=r"""\s(w_1(x-b_1)) \\
    \vdots \\
    \s(w_F(x-b_F))""",
        machine="sigma(w[i]*(x - b[i]))",
    ),
    Equation(
        id="B.1.gradient-w",
        section="B.1",
        title="network: gradient by w",
        line=1934,
        latex=r"""v_1 (x-b_1) \s(w_1(x-b_1)) (1 - \s(w_1(x-b_1))) \\
    \vdots \\
    v_F (x-b_F) \s(w_F(x-b_F)) (1 - \s(w_F(x-b_F)))""",
        machine="v[i]*(x - b[i])*sigma(w[i]*(x - b[i]))*(1 - sigma(w[i]*(x - b[i])))",
    ),
    Equation(
        id="B.1.activation",
        section="B.1",
        title="argument of the logistic function",
        line=1940,
        latex=r"a_i = w_i x + b_i",
        machine="w[i]*x + b[i]",
        inline=True,
        restated=(Restated(1917, "w[i]*(x - b[i])"),),
    ),
    Equation(
        id="B.1.hessian-xx",
        section="B.1",
        title="network: x by x",
        line=1943,
        latex=r"\nabla^2_x f(x) &= \sum_{i=1}^F v_i w_i^2 \s(a_i)(1-\s(a_i)(3-2\s(a_i)))",
        machine="total(1, F, lambda i: v[i]*w[i]**2*sigma(a[i])*(1 - sigma(a[i])*(3 - 2*sigma(a[i]))))",
    ),
    Equation(
        id="B.1.hessian-xv",
        section="B.1",
        title="network: x by v",
        line=1944,
        latex=r"\nabla_x \nabla_{v_i} f(x) &= w_i\s(a_i)(1-\s(a_i))",
        machine="w[i]*sigma(a[i])*(1 - sigma(a[i]))",
    ),
    Equation(
        id="B.1.hessian-xw",
        section="B.1",
        title="network: x by w",
        line=1945,
        latex=r"""\nabla_x \nabla_{w_i} f(x) &= v_i\s(a_i)(1-\s(a_i))
      + (x-b_i)w_i v_i \s(a_i)(1-\s(a_i))((1-2\s(a_i))""",
        machine="v[i]*sigma(a[i])*(1 - sigma(a[i]))"
        " + (x - b[i])*w[i]*v[i]*sigma(a[i])*(1 - sigma(a[i]))*((1 - 2*sigma(a[i]))",
    ),
    Equation(
        id="B.1.hessian-vv",
        section="B.1",
        title="network: v by v",
        line=1947,
        latex=r"\nabla_{v_i} \nabla_{v_i} f(x) &= 0",
        machine="0",
    ),
    Equation(
        id="B.1.hessian-vw",
        section="B.1",
        title="network: v by w",
        line=1948,
        latex=r"\nabla_{v_i} \nabla_{w_i} f(x) &= (x-b_i)\s(a_i)(1-\s(a_i))",
        machine="(x - b[i])*sigma(a[i])*(1 - sigma(a[i]))",
    ),
    Equation(
        id="B.1.hessian-ww",
        section="B.1",
        title="network: w by w",
        line=1949,
        latex=r"""\nabla_{w_i} \nabla_{w_i} f(x) &=
      v_i(x-b_i)^2\s(a_i)(1-\s(a_i)(3-2\s(a_i)))""",
        machine="v[i]*(x - b[i])**2*sigma(a[i])*(1 - sigma(a[i])*(3 - 2*sigma(a[i])))",
    ),
)

FOURIER = (
    Equation(
        id="B.2.fourier",
        section="B.2",
        title="Fourier features",
        line=1958,
        latex=r"""f(x) = \sqrt{\frac{2}{F}}\sum_{i=1}^{\nicefrac{F}{2}} v_{2i-1}
    \sin(\w_{2i-1} x) + v_{2i} \cos(\w_{2i} x)""",
        machine="sqrt(2/F) * total(1, F/2, lambda i: v[2*i - 1]*sin(omega[2*i - 1]*x) + v[2*i]*cos(omega[2*i]*x))",
        introduces="Fourier features",
    ),
    Equation(
        id="B.2.gradient-x",
        section="B.2",
        title="Fourier: gradient by x",
        line=1966,
        latex=r"""\sqrt{\frac{2}{F}}\sum_{i=1}^{\nicefrac{F}{2}}
      v_{2i-1} \w_{2i-1} \cos(\w_{2i-1} x)
      - v_{2i} \w_{2i} \sin(\w_{2i} x)""",
        machine="sqrt(2/F) * total(1, F/2, lambda i: v[2*i - 1]*omega[2*i - 1]*cos(omega[2*i - 1]*x)"
        " - v[2*i]*omega[2*i]*sin(omega[2*i]*x))",
    ),
    Equation(
        id="B.2.gradient-v",
        section="B.2",
        title="Fourier: gradient by v",
        line=1969,
        latex=r"""\sqrt{\frac{2}{F}} \sin(\w_{1} x)\\
    \sqrt{\frac{2}{F}} \cos(\w_{2} x)\\
    \vdots \\
    \sqrt{\frac{2}{F}} \sin(\w_{F-1} x)\\
    \sqrt{\frac{2}{F}} \cos(\w_{F} x)""",
        machine="vector(sqrt(2/F) * sin(omega[2*i - 1]*x), sqrt(2/F) * cos(omega[2*i]*x))",
    ),
    Equation(
        id="B.2.normalisation",
        section="B.2",
        title="normalisation",
        line=1978,
        latex=r"c = \sqrt{\nicefrac{2}{F}}",
        machine="sqrt(2/F)",
        introduces="c",
        inline=True,
    ),
    Equation(
        id="B.2.hessian-xx",
        section="B.2",
        title="Fourier: x by x",
        line=1981,
        latex=r"""\nabla^2_x f(x) &= c \sum_{i=1}^{\nicefrac{F}{2}}
      - v_{2i-1} \w_{2i-1}^2 \sin(\w_{2i-1} x)
      - v_{2i} \w_{2i}^2 \cos(\w_{2i} x)""",
        machine="c * total(1, F/2, lambda i: -v[2*i - 1]*omega[2*i - 1]**2*sin(omega[2*i - 1]*x)"
        " - v[2*i]*omega[2*i]**2*cos(omega[2*i]*x))",
    ),
    Equation(
        id="B.2.hessian-xv",
        section="B.2",
        title="Fourier: x by v",
        line=1984,
        latex=r"""\nabla_x \nabla_{v_i} f(x) &= \begin{cases}
    c \omega_i \cos(\omega_i x) & \q i \q \text{odd}\\
    - c \omega_i \sin(\omega_i x) & \q i \q \text{even}
    \end{cases}""",
        machine="vector(c*omega[2*i - 1]*cos(omega[2*i - 1]*x), -c*omega[2*i]*sin(omega[2*i]*x))",
    ),
    Equation(
        id="B.2.hessian-vv",
        section="B.2",
        title="Fourier: v by v",
        line=1988,
        latex=r"\nabla_{v_i} \nabla_{v_i} f(x) &= 0",
        machine="vector(0, 0)",
    ),
)

RADIAL = (
    Equation(
        id="B.3.radial",
        section="B.3",
        title="radial basis functions",
        line=1996,
        latex=r"f(x) = \sum_{i=1}^F v_i \exp\left(-\frac{(x-c_i)^2}{2\lambda^2}\right)",
        machine=f"total(1, F, lambda i: v[i]*{_BELL})",
        introduces="radial features",
    ),
    Equation(
        id="B.3.gradient-x",
        section="B.3",
        title="radial: gradient by x",
        line=2003,
        latex=r"""\sum_{i=1}^F v_i \exp\left(-\frac{(x-c_i)^2}{2\lambda^2}\right)
      \frac{(c_i-x)}{2\lambda^2}""",
        machine=f"total(1, F, lambda i: v[i]*{_BELL}*(c[i] - x)/(2*lam**2))",
    ),
    Equation(
        id="B.3.gradient-v",
        section="B.3",
        title="radial: gradient by v",
        line=2005,
        latex=r"""\exp\left(-\frac{(x-c_1)^2}{2\lambda^2}\right) \\
    \vdots \\
    \exp\left(-\frac{(x-c_F)^2}{2\lambda^2}\right)""",
        machine=_BELL,
    ),
    Equation(
        id="B.3.hessian-xx",
        section="B.3",
        title="radial: x by x",
        line=2014,
        latex=r"""\nabla^2_x f(x) &= \sum_{i=1}^F v_i
      \exp\left(-\frac{(x-c_i)^2}{2\lambda^2}\right)
      \left[
        \left(\frac{c_i - x}{2\lambda^2}\right)^2 - \frac{1}{\lambda^2}
      \right]""",
        machine=f"total(1, F, lambda i: v[i]*{_BELL}*(((c[i] - x)/(2*lam**2))**2 - 1/lam**2))",
    ),
    Equation(
        id="B.3.hessian-xv",
        section="B.3",
        title="radial: x by v",
        line=2020,
        latex=r"""\nabla_x \nabla_{v_i} f(x) &= \exp\left(-\frac{(x-c_i)^2}{2\lambda^2}\right)
        \frac{c_i - x}{2\lambda^2}""",
        machine=f"{_BELL}*(c[i] - x)/(2*lam**2)",
    ),
    Equation(
        id="B.3.hessian-vv",
        section="B.3",
        title="radial: v by v",
        line=2022,
        latex=r"\nabla_{v_i} \nabla_{v_i} f(x) &= 0",
        machine="0",
    ),
)

EQUATIONS = (*NETWORK, *FOURIER, *RADIAL)
