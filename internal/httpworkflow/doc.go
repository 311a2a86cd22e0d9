// Package httpworkflow finds subworkflows whose workflow_ref is an http or https address.
//
// A workflow document is not the operator's, and an address in one makes the engine send requests from where the engine
// stands. So nothing is fetched that the operator has not allowed: an address, and each one that a redirect leads to,
// has to begin with one of Config.Allow; and whatever a name resolves to, no connection is made to a loopback, private,
// link-local or otherwise special address unless Config.PrivateNetworks has it. That is checked for the very address
// that is dialled, so that a name cannot mean another one by then.
//
// A fetched document is bounded in time and size, and kept for the process: as long as Cache-Control allows, then requested
// again with its ETag. A document with a pinned hash is requested once.
package httpworkflow
