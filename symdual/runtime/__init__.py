"""Load generated packages and run them: beliefs, controllers, the closed loop. Never imports sympy or jinja2."""
