package spec

// Names of the search attributes of runs. The starter sets all that the namespace
// has registered, and the workflow keeps true those that the run was started with. The
// queue of a run is in the server's own attribute TaskQueue.
const (
	// AttributeOwner is who started the run.
	AttributeOwner = "ClusterRunOwner"
	// AttributeVerdict is the run's [Verdict], from its end on.
	AttributeVerdict = "ClusterRunVerdict"
	// AttributeHost are the hosts that have the run's tasks, or had them last, as
	// many as fit.
	AttributeHost = "ClusterRunHost"
	// AttributeName is the name in the spec.
	AttributeName = "ClusterRunName"
	// AttributeCause is why the run ended: see [RunResult.Cause].
	AttributeCause = "ClusterRunCause"
	// AttributeExitCode is the exit code of the run, from its end on.
	AttributeExitCode = "ClusterRunExitCode"
	// AttributePriority is the run's priority, from 1 to 5.
	AttributePriority = "ClusterRunPriority"
	// AttributeTasks is the number of tasks.
	AttributeTasks = "ClusterRunTasks"
	// AttributeRestarts is how many processes were started again. Of an open run it has the
	// restarts of the group alone, at powers of two.
	AttributeRestarts = "ClusterRunRestarts"
	// AttributeNone is the value of verdict, hosts, cause and exit code until there is one.
	// Servers drop empty values, and with them the sign that an attribute is to be kept.
	AttributeNone = "none"
)

// Attribute is a search attribute: its name, and its type in the words of the temporal CLI.
type Attribute struct{ Name, Type string }

// Attributes returns the search attributes of runs, those of the first versions first. A
// database takes ten of the type Keyword and three of each other type in a namespace, and
// its users have their own: so those of which nobody asks for more or less are no numbers.
func Attributes() []Attribute {
	return []Attribute{
		{AttributeOwner, "Keyword"},
		{AttributeVerdict, "Keyword"},
		{AttributeHost, "KeywordList"},
		{AttributeName, "Keyword"},
		{AttributeCause, "Keyword"},
		{AttributeExitCode, "Keyword"},
		{AttributePriority, "Keyword"},
		{AttributeTasks, "Int"},
		{AttributeRestarts, "Int"},
	}
}
