// Package streamable reads the messages of MCP over HTTP ("streamable HTTP") for the SDK's handler, and bounds its sessions.
//
// Package httpguard checks who may send a request. The message is then read by package frame, as over standard input:
// invalid ones are answered here and reach neither session nor SDK. Every refusal is a JSON-RPC error.
package streamable
