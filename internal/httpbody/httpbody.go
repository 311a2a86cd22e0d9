// Package httpbody reads answers of untrusted servers.
package httpbody

import (
	"io"
	"net/http"
)

// Of returns the body of an answer. That of 101 Switching Protocols is empty here: net/http makes it the connection itself, which does not
// end, and which no context ends.
func Of(res *http.Response) io.Reader {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return http.NoBody
	}
	return res.Body
}
