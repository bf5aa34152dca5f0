// Package policy decides what a host runs, for whom and as which user. It is pure: its caller
// verifies signatures, resolves programs and reads files.
//
// A [Policy] is a list of rules, which its owner writes as YAML. A rule applies to a request if it
// names the signer and the request is within all the rule's bounds. The first rule that applies
// decides. If none applies, the request is denied. If there is no policy, everything is allowed.
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
// for everything in it. A directory stands for itself and everything in it. The directory that a
// run ships is called ship:/ on every host, and the signature covers its content.
//
// Patterns match real paths. Before the policy is consulted, links in the path to a program are
// resolved, except in the path's last element; paths of directories are resolved completely. The
// program that was checked is the one that is executed. For example, /usr/bin/python3 matches under
// that name rather than as python3.12. But if /bin is a link to /usr/bin, write /usr/bin/sh. A path
// that contains .. is denied, because through a link it may lead anywhere.
//
// # Bounds
//
// A bound that is missing does not restrict anything, with two exceptions. First, if a rule
// restricts programs, the spec may set only the variables listed in env, because variables that
// name code, such as LD_PRELOAD, PYTHONPATH, BASH_ENV and NCCL_NET_PLUGIN, can make any program run
// different code. Second, a rule never grants root implicitly. If the host worker runs as root and
// the rule does not name a user, the request is denied. To allow tasks to run as root, the rule
// must name root.
package policy
