# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2034 # prov, args, vars, device: the caller's
#
# What is measured: configuration -> provider, duobench's arguments, variables
# and whether it needs an EFA device. Sourced by contrib/bench.

# In this order in each round: what is compared lies close together.
all_configs=(shm duo-tcp duo-efa efa-shm efa duo-efa-remote efa-udp
	duo-efa-udp-remote tcp duo-tcp-remote lnx)
mpi_configs=(ob1-sm duo-efa efa-shm efa duo-tcp)

# config_of NAME: sets prov, args, vars, device.
config_of()
{
	prov='' args=() vars=() device=''
	case $1 in
	shm)
		prov=shm;;
	tcp)
		prov=tcp;;
	lnx)
		prov=lnx args=(-T -P shm) vars=(FI_LNX_PROV_LINKS=shm+tcp);;
	efa)
		prov=efa device=1 vars=(FI_EFA_ENABLE_SHM_TRANSFER=0);;
	efa-udp)	# the software device's other wire: microseconds, as a NIC
		prov=efa device=1
		vars=(FI_EFA_ENABLE_SHM_TRANSFER=0 SOFTEFA_WIRE=udp);;
	efa-shm)
		prov=efa device=1 args=(-c)
		vars=(FI_EFA_ENABLE_SHM_TRANSFER=1);;
	duo-tcp|duo-efa)
		prov="${1#duo-};ofi_duo" args=(-P shm);;
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

# mpi_config_of NAME: sets args (of mpirun), vars, device.
mpi_config_of()
{
	local mtl=(--mca pml cm --mca mtl ofi --mca btl self)
	args=() vars=() device=''
	case $1 in
	ob1-sm)
		args=(--mca pml ob1 --mca btl "self,sm");;
	duo-tcp)
		args=("${mtl[@]}" --mca mtl_ofi_provider_include "tcp;ofi_duo");;
	duo-efa)
		vars=(FI_PROVIDER="efa;ofi_duo") device=1
		args=("${mtl[@]}" --mca mtl_ofi_provider_include "efa;ofi_duo");;
	efa-shm|efa)
		vars=(FI_PROVIDER=efa FI_EFA_ENABLE_SHM_TRANSFER=1) device=1
		[[ $1 == efa-shm ]] ||
			vars=(FI_PROVIDER=efa FI_EFA_ENABLE_SHM_TRANSFER=0)
		args=("${mtl[@]}" --mca mtl_ofi_provider_include efa);;
	esac
}

# A real EFA device, or the software one?
real_efa()
{
	local driver
	for driver in /sys/class/infiniband/*/device/driver; do
		[[ $(readlink "$driver") != */efa ]] || return 0
	done
	return 1
}
