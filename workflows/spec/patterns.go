package spec

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// syntax is a condition on a value in addition to its Go type. The pattern is used in the JSON
// Schema, and check reports a mistake and its remedy.
type syntax struct {
	pattern string
	check   func(c *checker, path string, value any)
}

var (
	nameSyntax        = matching(namePattern, "name", `use up to 100 letters, digits, ".", "-" and "_", without a leading dot`)
	unsetSyntax       = matching(unsetPattern, "variable name", "write one such as LD_PRELOAD, or a prefix and a *, such as NCCL_*")
	typeSyntax        = syntax{typePattern, elsewhere.check}
	commandSyntax     = syntax{check: rule(checkCommand)}
	argsSyntax        = syntax{check: rule(checkArgs)}
	pathSyntax        = syntax{absolutePattern, rule(checkDir)}
	sizeSyntax        = syntax{check: rule(checkSizeText)}
	memorySyntax      = syntax{check: rule(checkMemory)}
	quotaSyntax       = syntax{check: rule(checkQuota)}
	coreSyntax        = syntax{check: rule(checkCore)}
	excludeSyntax     = syntax{`[^\x00]`, rule(checkExclude)}
	signalSyntax      = syntax{signalPattern, rule(checkSignal)}
	errorKindSyntax   = syntax{`^[^\x00]+$`, rule(checkErrorKind)}
	lineFilterSyntax  = syntax{check: rule(checkLineFilter)}
	prefixSyntax      = syntax{check: rule(checkPrefix)}
	stdSyntax         = syntax{stdPattern, elsewhere.check}
	devicesSyntax     = syntax{devicesPattern, rule(checkDevices)}
	cpusSyntax        = syntax{cpusPattern, rule(checkCPUs)}
	expirySyntax      = matching(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$`, "time", "leave the signature out; signing a request sets it")
	hostPatternSyntax = syntax{check: rule(checkHostPattern)}
	silenceSyntax     = syntax{pattern: silencePattern}
	// elsewhere is for values that are checked in combination.
	elsewhere = syntax{check: func(*checker, string, any) {}}
)

// rule checks values of type T.
func rule[T any](check func(c *checker, path string, value T)) func(*checker, string, any) {
	return func(c *checker, path string, value any) { check(c, path, value.(T)) }
}

// matching returns the syntax of strings that match the pattern.
func matching(pattern, what, remedy string) syntax {
	compiled := lazyregexp.New(pattern)
	return syntax{pattern, rule(func(c *checker, path, text string) {
		isItem := strings.HasSuffix(path, "]")
		if (text != "" || isItem) && !compiled().MatchString(text) {
			c.add(path, Quote(text)+" is not a valid "+what, remedy)
		}
	})}
}

// The patterns use only syntax common to Go's and ECMA's regular expressions.
const (
	// namePattern matches names that are valid in a workflow ID and as a directory.
	namePattern = `^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`
	// unsetPattern matches variable names and prefixes.
	unsetPattern = `^([^=*\x00]+\*?|\*)$`
	// typePattern keeps task names unambiguous. In "param-server-0", the last hyphen precedes the
	// index. No part of a type starts with a digit, so a type never looks like a task name.
	typePattern     = `^[a-z][a-z0-9_]*(-[a-z][a-z0-9_]*)*$`
	absolutePattern = `^/`
	// durationPattern matches the input of [ParseDuration], without a sign.
	durationPattern = `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// silencePattern is a [Silence].
	silencePattern = `^(auto|never|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// stdPattern matches the input of [ParseStd].
	stdPattern = `^([0-3]|(\d+(-\d+)?:[0-3],)*\d+(-\d+)?:[0-3])$`
	// devicesPattern and cpusPattern match [Resources] as a string. A device may also be given by
	// name, such as a GPU's UUID.
	devicesPattern = `^(auto|[A-Za-z0-9][A-Za-z0-9._:/-]*(,[A-Za-z0-9][A-Za-z0-9._:/-]*)*)$`
	cpusPattern    = `^(auto|\d+(-\d+)?(,\d+(-\d+)?)*)$`
	// hostCountPattern is a [HostCount].
	hostCountPattern = `^0*[1-9][0-9]*(:0*[1-9][0-9]*)?$`
	// indexPattern matches a task index, which is an override's key.
	indexPattern = `^(0|[1-9][0-9]*)$`
)

// maxTypeLength limits a task type, in bytes.
const maxTypeLength = 63

var (
	typeRegexp  = lazyregexp.New(typePattern)
	indexRegexp = lazyregexp.New(indexPattern)
)

func validType(typ string) bool { return len(typ) <= maxTypeLength && typeRegexp().MatchString(typ) }
