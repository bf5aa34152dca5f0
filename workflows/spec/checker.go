package spec

// Checker collects the problems of a request that another package defines, as the
// requests here are checked.
type Checker struct{ c checker }

// Add notes a rule that is broken.
func (c *Checker) Add(path, message, remedy string) { c.c.add(path, message, remedy) }

// TaskName notes a text that is not the name of a task.
func (c *Checker) TaskName(path, name string) { c.c.checkTaskName(path, name) }

// Duration notes a text that is no time span, or a negative or too long one.
func (c *Checker) Duration(path, text string) {
	d, err := ParseDuration(text)
	c.c.addError(path, err)
	c.c.checkDuration(path, &d, orZero)
}

// Full reports whether further problems are only counted.
func (c *Checker) Full() bool { return len(c.c.problems) >= maxProblems }

// Err returns an [*InvalidRequestError] with all problems, or nil.
func (c *Checker) Err() error { return c.c.requestError() }
