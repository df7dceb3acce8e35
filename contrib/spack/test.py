# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""test.py: checks that package.py agrees with configure.ac.

Does not need Spack: modules with the names of those of Spack 1.0 record the recipe's
declarations. Prints a line for each error; exit status 1 if there is one.
"""

import ast
import os
import re
import sys
import types

here = os.path.dirname(os.path.abspath(__file__))
top = os.path.join(here, "..", "..")
declared = []
failed = 0


def check(right, what):
    global failed
    if not right:
        print("spack: " + what)
        failed = 1


def directive(name):
    return lambda *args, **kwargs: declared.append((name, args, kwargs))


class Prefix(str):
    """Replaces Spack's class: prefix.lib.libfabric is PREFIX/lib/libfabric."""

    def __getattr__(self, name):
        return Prefix(self + "/" + name)


class Spec(dict):
    def __init__(self, variants):
        super().__init__(libfabric=types.SimpleNamespace(prefix=Prefix("/fabric")))
        self.variants = variants

    def satisfies(self, constraint):
        return self.variants[constraint[1:]] == (constraint[0] == "+")


class AutotoolsPackage:
    prefix = Prefix("/duo")

    def enable_or_disable(self, name):
        return ["--%s-%s" % ("enable" if self.spec.variants[name] else "disable", name)]


def stand_in(name, **content):
    module = types.ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module


def load():
    """Executes the recipe, and returns its class."""
    names = ("conflicts", "depends_on", "license", "maintainers", "variant", "version")
    stand_in("spack")
    stand_in("spack.package", getcwd=os.getcwd, **{n: directive(n) for n in names})
    stand_in("spack_repo")
    stand_in("spack_repo.builtin")
    stand_in("spack_repo.builtin.build_systems")
    stand_in("spack_repo.builtin.build_systems.autotools",
             AutotoolsPackage=AutotoolsPackage)
    path = os.path.join(here, "package.py")
    with open(path) as file:
        tree = ast.parse(file.read(), path)
    recipe = {}
    exec(compile(tree, path, "exec"), recipe)
    return recipe["OfiDuo"]


def args_of(name):
    return [args[0] for kind, args, kwargs in declared if kind == name]


def read(*names):
    text = ""
    for name in names:
        with open(os.path.join(top, name)) as file:
            text += file.read()
    return text


def check_configure(package, configure):
    """Checks that configure accepts the recipe's arguments, for each combination of
    variants."""
    variants = args_of("variant")
    for bits in range(1 << len(variants)):
        package.spec = Spec({v: bool(bits >> i & 1) for i, v in enumerate(variants)})
        for arg in package.configure_args():
            option = re.match(r"--(?:enable|disable|with|without)-(\w+)", arg)
            if option:
                check("_ENABLE([%s]" % option[1] in configure
                      or "_WITH([%s]" % option[1] in configure,
                      "configure has no " + arg)
            else:
                check(arg.startswith("ac_cv_header_")
                      and arg[len("ac_cv_header_"):].replace("_h=no", ".h")
                      .replace("_", "/", 1) in configure,
                      "configure does not check for " + arg)


def check_environment(package):
    paths = []
    env = types.SimpleNamespace(append_path=lambda name, path: paths.append((name, path)))
    package.setup_run_environment(env)
    check(paths == [("FI_PROVIDER_PATH", "/duo/lib/libfabric"),
                    ("FI_PROVIDER_PATH", "/fabric/lib/libfabric")],
          "FI_PROVIDER_PATH is set to %s" % paths)


def main():
    configure = read("configure.ac", "config/duo_deps.m4")
    version = re.search(r"AC_INIT\(\[ofi_duo\], \[([^]]+)\]", configure)[1]
    package = load()()
    check(version in args_of("version"), "version %s is missing" % version)
    check(package.url_for_version(version).endswith("/ofi_duo-%s.tar.gz" % version),
          "url_for_version gives " + package.url_for_version(version))
    check(args_of("license") == ["BSD-2-Clause OR GPL-2.0-only"], "another license")
    check(any(spec.startswith("libfabric@2") for spec in args_of("depends_on")),
          "no libfabric@2")
    check_configure(package, configure)
    check_environment(package)
    return failed


if __name__ == "__main__":
    sys.exit(main())
