package lease

// MaxWitnesses is the most hosts of a generation that extend the leases of the others. All of them
// must say so, and each must live for that, so more of them would save fewer processes.
const MaxWitnesses = 7

// IsWitness reports whether the ith of the hosts of a generation is a witness. Witnesses are spread
// over the hosts, which are in the order of their ranks: hosts that fail together are neighbours.
func IsWitness(i, hosts int) bool {
	most := min(hosts, MaxWitnesses)
	return (i+1)*most/hosts > i*most/hosts
}
