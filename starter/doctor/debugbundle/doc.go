// Package debugbundle packs the information that support needs, without secrets.
//
// Three measures keep secrets out, each for those that the others miss. Fields and files made
// for secrets are left out, with the reason: payloads, values of variables, output of
// processes, files of keys. Values that this host knows to be secret are replaced everywhere,
// in their usual encodings. And text that looks like a secret is replaced, by the rule that
// `clusterrun` uses for variables ([spec.LooksSecret]): an assignment, a flag, a header, a URL.
//
// [Bundle.Write] writes a tar file with gzip. Its first file, manifest.json, lists its files,
// and what was left out and why.
package debugbundle
