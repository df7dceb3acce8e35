# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2034 # prov, args, vars, device: the caller's
#
# Configurations: provider, arguments of duobench, environment variables, and
# whether an EFA device is needed. Sourced by contrib/bench.

# The order in each round. Configurations that are compared follow each other.
all_configs=(shm near duo-tcp duo-efa hook-efa duo-efa-shm efa-shm efa
	duo-efa-remote efa-udp duo-efa-udp-remote tcp duo-tcp-remote lnx)
osc_configs=(osc-sm osc-duo-efa osc-efa)
mpi_configs=(ob1-sm ucx near duo-efa hook-efa duo-efa-shm efa-shm efa duo-tcp)

# config_of NAME: sets prov, args, vars and device; fails for an unknown name
config_of()
{
	prov='' args=() vars=() device=''
	case $1 in
	shm|tcp)
		prov=$1;;
	near)
		prov=near args=(-P shm);;
	lnx)
		prov=lnx args=(-T -P shm) vars=(FI_LNX_PROV_LINKS=shm+tcp);;
	efa)
		prov=efa device=1 vars=(FI_EFA_ENABLE_SHM_TRANSFER=0);;
	efa-udp)	# the UDP wire of the software EFA device, as slow as a NIC
		prov=efa device=1
		vars=(FI_EFA_ENABLE_SHM_TRANSFER=0 SOFTEFA_WIRE=udp);;
	efa-shm)
		prov=efa device=1 args=(-c)
		vars=(FI_EFA_ENABLE_SHM_TRANSFER=1);;
	duo-tcp|duo-efa)
		prov="${1#duo-};ofi_duo" args=(-P shm);;
	near-threads|duo-tcp-threads|duo-efa-threads)	# an endpoint per thread
		config_of "${1%-threads}"
		args+=(-m 2);;
	hook-efa)	# ofi_duo under the core's name
		prov=efa args=(-P shm) vars=(FI_HOOK=duo);;
	duo-tcp-safe)	# FI_THREAD_SAFE: ofi_duo uses a lock
		prov="tcp;ofi_duo" args=(-P shm -H);;
	duo-efa-shm)
		prov="efa;ofi_duo" args=(-P shm) vars=(FI_OFI_DUO_LOCAL=shm);;
	duo-tcp-remote|duo-efa-remote)
		prov=${1#duo-}
		prov="${prov%-remote};ofi_duo" args=(-R -P core);;
	duo-efa-udp-remote)
		prov="efa;ofi_duo" args=(-R -P core) vars=(SOFTEFA_WIRE=udp);;
	*)
		return 1;;
	esac
	[[ $prov != efa* ]] || device=1
}

# mpi_config_of NAME: sets vars and device. vars are environment variables that
# select Open MPI's components. They are used in place of mpirun's options, which
# depend on the way in which mpirun was started.
mpi_config_of()
{
	local mtl=(OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_btl=self)
	local provider=''
	vars=() device=''
	case $1 in
	ob1-sm)
		vars=(OMPI_MCA_pml=ob1 OMPI_MCA_btl="self,sm");;
	ucx)
		vars=(OMPI_MCA_pml=ucx OMPI_MCA_btl=self OMPI_MCA_osc=ucx
			OMPI_MCA_opal_common_ucx_tls=any
			OMPI_MCA_opal_common_ucx_devices=any
			UCX_TLS="posix,cma,self");;
	duo-tcp|duo-efa)
		provider="${1#duo-};ofi_duo"
		vars=(FI_OFI_DUO_STATS=1);;
	hook-efa)
		provider=efa vars=(FI_HOOK=duo FI_OFI_DUO_STATS=1);;
	duo-efa-shm)
		provider="efa;ofi_duo"
		vars=(FI_OFI_DUO_STATS=1 FI_OFI_DUO_LOCAL=shm);;
	osc-sm)
		vars=(OMPI_MCA_pml=ob1 OMPI_MCA_btl="self,sm" OMPI_MCA_osc=sm);;
	osc-duo-efa)
		provider="efa;ofi_duo" vars=(FI_OFI_DUO_STATS=1);;
	osc-efa)
		provider=efa vars=(FI_EFA_ENABLE_SHM_TRANSFER=0);;
	near)
		provider=near;;
	efa-shm)
		provider=efa vars=(FI_EFA_ENABLE_SHM_TRANSFER=1);;
	efa)
		provider=efa vars=(FI_EFA_ENABLE_SHM_TRANSFER=0);;
	*)
		return 1;;
	esac
	# Open MPI starts btl/ofi only if no pml is selected
	[[ $1 != osc-* ]] || mtl=(OMPI_MCA_mtl=ofi OMPI_MCA_osc=rdma
		OMPI_MCA_btl="self,ofi")
	if [[ -n $provider ]]; then
		vars+=("${mtl[@]}" FI_PROVIDER="$provider"
			OMPI_MCA_mtl_ofi_provider_include="$provider")
	fi
	[[ $provider != efa* ]] || device=1
}
