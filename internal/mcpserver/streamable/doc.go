// Package streamable is what stands before the SDK's handler of MCP over HTTP ("streamable HTTP"): who may connect, what is taken in, how
// many sessions there are, and how the server ends.
//
// A request passes, in this order: the path; the Host header, against pages that have their own name resolved to this server (DNS
// rebinding); the Origin header, against pages of other sites; the token. A message is then read as over standard input and output
// (package frame): what is none is answered here and reaches neither session nor SDK. Every refusal is a JSON-RPC error.
package streamable
