// Package notices sends notices about runs to webhooks, signed as Standard Webhooks
// (standardwebhooks.com) are. Its caller asks the policy of the host, reads secrets and repeats
// tries that have failed.
package notices
