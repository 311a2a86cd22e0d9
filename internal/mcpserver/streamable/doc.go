// Package streamable guards the SDK's handler of MCP over HTTP ("streamable HTTP"): access, limits, sessions, and the
// end of the server.
//
// A request is checked in this order: the path; the Host header, against pages whose name resolves to this server (DNS
// rebinding); the Origin header, against pages of other sites; the token. The message is then read by package frame, as
// over standard input: invalid ones are answered here and reach neither session nor SDK. Every refusal is a JSON-RPC
// error.
package streamable
