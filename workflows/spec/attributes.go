package spec

// Names of the search attributes of runs. The starter sets all that the namespace
// has registered, and the workflow keeps true those that it was started with.
const (
	// AttributeOwner is who started the run. A Keyword.
	AttributeOwner = "ClusterRunOwner"
	// AttributeVerdict is the run's [Verdict], from its end on. A Keyword.
	AttributeVerdict = "ClusterRunVerdict"
	// AttributeHost are the hosts that have the run's tasks, or had them last, as
	// many as fit. A KeywordList.
	AttributeHost = "ClusterRunHost"
	// AttributeNone is the value of the latter two until there is one. Servers drop
	// empty values, and with them the sign that an attribute is to be kept.
	AttributeNone = "none"
)
