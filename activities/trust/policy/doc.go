// Package policy decides what a host runs, for whom and as which user. It is pure: its caller
// verifies signatures, resolves programs and reads files.
//
// A [Policy] is a list of rules, which its owner writes as YAML. A rule applies to a request if it
// names the signer and the request is within all the rule's bounds. The first rule that applies
// decides; without one, the request is denied. Without a policy everything is allowed.
//
//	rules:
//	  - signers: [alice@example.com]
//	    user: alice
//	    programs: [/usr/bin/python3, "/opt/jobs/**"]
//	    directories: [/srv/alice]
//	    env: [NCCL_DEBUG, EPOCHS]
//	    secrets: {env: [WANDB_API_KEY], files: ["/etc/clusterrun/secrets/*"]}
//	    webhooks: [hooks.example.com]
//	  - signers: [unsigned]
//	    user: nobody
//	    programs: [/opt/jobs/selftest]
//
// # Patterns
//
// A star stands for any characters except a slash, as in [path.Match]. A path ending in /** stands
// for everything in it. A directory stands for itself and everything in it. A run's shipped files
// are ship:/ on every host, and the signature covers their content.
//
// Patterns match real paths. Before the policy is consulted, links on the way to a program are
// resolved, and links to a directory completely; the checked program is executed. The last element
// of a program's path is not resolved: /usr/bin/python3 matches as that rather than as python3.12,
// but if /bin is a link to /usr/bin, write /usr/bin/sh. A path with .. is denied, because through
// a link it may lead anywhere.
//
// # Bounds
//
// A missing bound does not restrict anything, with two exceptions. If a rule restricts programs,
// the spec may set only the variables listed in env, because LD_PRELOAD and other variables that
// name code (PYTHONPATH, BASH_ENV, NCCL_NET_PLUGIN) can make any program run different code. And no
// rule grants root implicitly: a host worker that runs as root denies requests allowed by a rule
// without a user; to run as root, the rule must name it.
package policy
