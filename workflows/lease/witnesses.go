package lease

// MaxWitnesses limits how many of a generation's hosts extend other hosts' leases. All of them must
// agree, so each must be alive; with more witnesses, fewer processes would survive.
const MaxWitnesses = 7

// IsWitness reports whether the ith host of a generation is a witness. Witnesses are spread over
// the hosts, which are ordered by rank, because neighbouring hosts often fail together.
func IsWitness(i, hosts int) bool {
	most := min(hosts, MaxWitnesses)
	return (i+1)*most/hosts > i*most/hosts
}
