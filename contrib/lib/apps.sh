# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
# shellcheck shell=bash disable=SC2154 # scale, runner, bin: contrib/apps
#
# Applications from Debian's packages: their input, their command, and the lines
# of their output that are the result. Sourced by contrib/apps.
#
# $scale multiplies the number of steps, or the order of HPL's matrix.
#
#  app_NAME_needs       prints the program without which NAME is skipped
#  app_NAME_input N     makes the input for N ranks, in the current directory
#  app_NAME_command     sets the array program; uses runner and bin (of --bin)
#  app_NAME_result LOG  prints the lines that must not depend on the transport
#  app_NAME_seconds LOG prints the time that the application has measured; nothing:
#                       the time of the whole run counts
#  app_NAME_comm LOG    prints the time in communication, if the application
#                       measures that

# shellcheck disable=SC2034 # contrib/apps reads the array
app_names=(lammps gromacs openfoam hpcc)

# app_shows FILE: extends the array program: rank 0 removes FILE before the run,
# because some programs append to it, and prints FILE after the run
app_shows()
{
	# shellcheck disable=SC2016 # the rank's variables
	program=(bash -c '[[ $OMPI_COMM_WORLD_RANK -ne 0 ]] || rm -f "$1"
		"${@:2}" && { [[ $OMPI_COMM_WORLD_RANK -ne 0 ]] || cat "$1"; }' \
		program "$1" "${program[@]}")
}

# --- LAMMPS: Lennard-Jones melt, 4,000 atoms, 500 steps; without a thermostat,
# so that sums over ranks do not affect the motion.
app_lammps_needs() { echo lmp; }

app_lammps_input()
{
	cat >in.melt <<-'END'
	units		lj
	atom_style	atomic
	lattice		fcc 0.8442
	region		box block 0 10 0 10 0 10
	create_box	1 box
	create_atoms	1 box
	mass		1 1.0
	velocity	all create 1.44 87287 loop geom
	pair_style	lj/cut 2.5
	pair_coeff	1 1 1.0 1.0 2.5
	neighbor	0.3 bin
	neigh_modify	every 20 delay 0 check no
	fix		1 all nve
	thermo		50
	run		${steps}
	END
}

app_lammps_command()
{
	program=("${runner[@]}" "${bin:+$bin/}lmp" -in in.melt -log none
		-var steps $((500 * scale)))
}

app_lammps_result()
{
	awk '/^ *Step /, /^Loop time/ { if (!/^Loop/) print }' "$1"
}

app_lammps_seconds()
{
	sed -n 's/^Loop time of \([0-9.]*\) .*/\1/p' "$1"
}

# Prints the mean of the ranks' times in communication.
app_lammps_comm()
{
	awk -F'|' '/^Comm / { print $3 + 0 }' "$1"
}

# --- GROMACS: 884 molecules of water for each four ranks, with PME, 250 steps,
# reproducible mode.
app_gromacs_needs() { echo gmx_mpi; }

app_gromacs_input()
{
	local top=/usr/share/gromacs/top box
	box=$(awk -v n="$1" 'BEGIN { print 3 * (n > 4 ? n / 4 : 1) ^ (1 / 3) }')
	cp "$top/spc216.gro" .
	cat >topol.top <<-'END'
	#include "oplsaa.ff/forcefield.itp"
	#include "oplsaa.ff/spc.itp"
	[ system ]
	water
	[ molecules ]
	END
	cat >grompp.mdp <<-'END'
	integrator = md
	dt = 0.001
	nstenergy = 50
	nstlog = 50
	cutoff-scheme = Verlet
	coulombtype = PME
	rcoulomb = 0.9
	rvdw = 0.9
	gen-vel = yes
	gen-temp = 300
	gen-seed = 1
	END
	gmx -nobackup solvate -cs spc216.gro -box "$box" "$box" "$box" -o box.gro -p topol.top &&
		gmx -nobackup grompp -f grompp.mdp -c box.gro -p topol.top \
			-o topol.tpr -maxwarn 9
}

app_gromacs_command()
{
	program=("${runner[@]}" "${bin:+$bin/}gmx_mpi" -nobackup mdrun -s topol.tpr
		-nsteps $((250 * scale)) -reprod -notunepme
		-ntomp 1 -pin off -g md.log -x none.xtc -cpo none.cpt
		-noconfout)
	app_shows md.log
}

app_gromacs_result()
{
	awk '/Energies \(kJ/ { on = 4 } on-- > 0 { print }' "$1"
}

app_gromacs_seconds()
{
	awk '$1 == "Time:" { print $3 }' "$1"
}

# Prints the time in communication of the domains and of PME.
app_gromacs_comm()
{
	awk '/^ *(Comm. coord|Comm. energies|Wait \+ Comm. F|PME redist|PME 3D-FFT Comm)/ {
			sum += $(NF - 2)
		}
		END { print sum }' "$1"
}

# --- OpenFOAM: the tutorial cavity of icoFoam as a cube of 48 x 48 x 48 cells with
# five fixed walls, 10 steps.
app_openfoam_needs() { echo icoFoam; }

# The input includes OpenFOAM's settings, etc/controlDict. OpenFOAM's etc/bashrc
# would set WM_PROJECT_DIR; the rest of bashrc is not needed. END is the time of
# the last step.
app_openfoam_input()
{
	local examples=/usr/share/doc/openfoam-examples/examples x=$1 y=1 z=1
	local -x WM_PROJECT_DIR=$PWD END=0.01
	((x % 4)) || x=$((x / 2)) y=2
	((x % 4)) || x=$((x / 2)) z=2
	cp -r "$examples/incompressible/icoFoam/cavity/cavity/." .
	mkdir etc
	cp /usr/share/openfoam/etc/{controlDict,cellModels} etc
	sed -i 's/ 0\.1)/ 1)/; s/(20 20 1)/(48 48 48)/; s/empty/wall/' \
		system/blockMeshDict
	sed -i 's/empty/noSlip/' 0/U
	sed -i 's/empty/zeroGradient/' 0/p
	# shellcheck disable=SC2016 # icoFoam expands $END
	sed -i 's/^endTime .*/endTime $END;/; s/^deltaT .*/deltaT 0.001;/
		s/^writeInterval .*/writeInterval 1000000;/' system/controlDict
	cat >system/decomposeParDict <<-END
	FoamFile { version 2.0; format ascii; class dictionary;
		object decomposeParDict; }
	numberOfSubdomains $1;
	method simple;
	simpleCoeffs { n ($x $y $z); delta 0.001; }
	END
	blockMesh && decomposePar && rm -r constant/polyMesh
}

app_openfoam_command()
{
	program=(env WM_PROJECT_DIR="$PWD" END="${scale}e-2" "${runner[@]}"
		"${bin:+$bin/}icoFoam" -parallel)
}

app_openfoam_result()
{
	grep -E '^(Time =|.*Solving for|time step continuity)' "$1"
}

app_openfoam_seconds() { :; }
app_openfoam_comm() { :; }

# --- HPCC: all of its tests, HPL with N = 500. HPCC's own checks print PASSED.
# The residual of HPL does not depend on the transport.
app_hpcc_needs() { echo hpcc; }

app_hpcc_input()
{
	local example=/usr/share/doc/hpcc/examples/_hpccinf.txt rows=1
	[[ $1 -lt 4 ]] || rows=2
	sed "s/^2 \( *Ps\)$/$rows \1/; s/^2 \( *Qs\)$/$(($1 / rows)) \1/" \
		"$example" | sed "s/^1000\( *Ns\)/$((500 * scale))\1/" >hpccinf.txt
}

app_hpcc_command()
{
	program=(hpcc)
	app_shows hpccoutf.txt
}

app_hpcc_result()
{
	grep -E '^\|\|Ax-b\|\|.*(PASSED|FAILED)|^Success=' "$1"
	grep -c FAILED "$1"
}

app_hpcc_seconds() { :; }
app_hpcc_comm() { :; }
