# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
#
# Spack recipe (Spack 1.0 or newer). In a repository of your own:
#
#   spack repo create ~/repo mine
#   mkdir -p ~/repo/spack_repo/mine/packages/ofi_duo
#   cp contrib/spack/package.py ~/repo/spack_repo/mine/packages/ofi_duo
#   spack repo add ~/repo/spack_repo/mine
#   spack install ofi-duo       # in the directory of the release's tarball

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class OfiDuo(AutotoolsPackage):
    """A libfabric provider that wraps another one, EFA for example, and carries
    messages between processes of one host over shared memory. It is selected
    by name: FI_PROVIDER="efa;ofi_duo"."""

    # The tarball is in the working directory, because there is no home page.
    manual_download = True
    url = f"file://{getcwd()}/ofi_duo-0.1.0.tar.gz"

    license("BSD-2-Clause OR GPL-2.0-only")

    # contrib/release writes the checksum into its copy of the recipe.
    version("0.1.0")

    variant("near", default=True, description="Provider near for one host alone")
    variant("softefa", default=False, description="EFA device in software, for tests")

    depends_on("c", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("check@0.15:", type="test")

    # A module works with the minor version of libfabric for which it was built, and
    # with the other versions of its group: fi_duo(7).
    depends_on("libfabric@2: fabrics=shm")
    depends_on("rdma-core", when="+softefa", type="build")

    def url_for_version(self, version):
        return f"file://{getcwd()}/ofi_duo-{version}.tar.gz"

    def configure_args(self):
        args = [f"--with-providerdir={self.prefix.lib.libfabric}"]
        args += self.enable_or_disable("near")
        if self.spec.satisfies("~softefa"):
            # Without this argument configure builds softefa if the system has
            # the headers.
            args.append("ac_cv_header_infiniband_efadv_h=no")
        return args

    def setup_run_environment(self, env):
        # FI_PROVIDER_PATH replaces the directory in which libfabric searches by
        # default, so this function adds that directory, too.
        for prefix in (self.prefix, self.spec["libfabric"].prefix):
            env.append_path("FI_PROVIDER_PATH", prefix.lib.libfabric)
