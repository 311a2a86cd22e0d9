// Package httpguard guards HTTP servers of this project: who may send requests (Host, Origin and bearer tokens), how many
// connections there are, how long a client may take to send and to read, and the end of the server.
//
// The Host header is checked against pages whose name resolves to this server (DNS rebinding), the Origin header against
// pages of other sites, and then the token.
package httpguard
