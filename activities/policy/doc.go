// Package policy decides what a host runs, for whom and as which user. It is pure: its
// caller verifies signatures, resolves programs and reads files.
//
// A [Policy] is a list of rules, which its owner writes as YAML. A rule is for the signers
// that it names, and for what is within all of its bounds. The first such rule decides; what
// no rule is for is denied. Without a policy everything is allowed.
//
//	rules:
//	  - signers: [alice@example.com]
//	    user: alice
//	    programs: [/usr/bin/python3, "/opt/jobs/**"]
//	    directories: [/srv/alice]
//	    env: [NCCL_DEBUG, EPOCHS]
//	    secrets: {env: [WANDB_API_KEY], files: ["/etc/clusterrun/secrets/*"]}
//	  - signers: [unsigned]
//	    user: nobody
//	    programs: [/opt/jobs/selftest]
//
// # Patterns
//
// A star stands for any characters but a slash, as in [path.Match]. A path that ends in /**
// stands for everything below it. A directory stands for itself and everything below. What a
// run ships is ship:/ on every host: its content is what was signed.
//
// Patterns are of real paths: links on the way to a program are followed, and those to a
// directory to its end, before the policy is asked, and what it was asked about is executed.
// A program that is a link itself has its own name: /usr/bin/python3 is that, and not
// python3.12, but where /bin is a link to /usr/bin, write /usr/bin/sh. A path with .. is
// denied, since behind a link it may lead anywhere.
//
// # Bounds
//
// A bound that is not given bounds nothing, with two exceptions. Where programs are bounded,
// the spec may set only the variables that env names, because LD_PRELOAD makes any program
// another one, and so do others that name code: PYTHONPATH, BASH_ENV, NCCL_NET_PLUGIN. And
// no rule lends root: a host worker that runs as root denies what a rule allows without a
// user, and root has to be named.
package policy
