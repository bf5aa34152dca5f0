// Package debugbundle packs what those need to know who help, and no secrets.
//
// Three things keep secrets out, each for what the others miss. What is made to hold them is
// left out, with the reason: payloads, values of variables, output of processes, files of keys.
// The values that this host knows to be secrets are replaced wherever they are, in their usual
// encodings. And what looks like a secret in a text is replaced by the rule that `clusterrun`
// has for variables ([spec.LooksSecret]): an assignment, a flag, a header, a URL.
//
// [Bundle.Write] writes a tar file with gzip; its first file, manifest.json, lists what is in
// it and what was left out, and why.
package debugbundle
