"""Python packages that an adapter can't do without."""

import importlib.util

from .problem import Problem


def need(names, requirements, options="", instead=""):
    """Raises where one isn't installed, with the command that installs them: the list of an adapter, and pip's options."""
    lacking = [name for name in names if not there(name)]
    if lacking:
        raise Problem(
            "got no package %s, want it installed: python -m pip install %s--require-hashes -r '%s'%s"
            % (", ".join(lacking), options and options + " ", requirements, instead and "; or " + instead)
        )


def there(name):
    return importlib.util.find_spec(name) is not None
