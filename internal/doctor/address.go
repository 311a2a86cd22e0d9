package doctor

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Address asks the server at an address for its health. It sends no token, so it does not check the host's access.
func (r *Report) Address(ctx context.Context, subject, address string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	u, err := url.Parse(address)
	var answer *http.Response
	if err == nil {
		u.Path, u.RawPath, u.RawQuery = "/healthz", "", ""
		var request *http.Request
		if request, err = http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil); err == nil {
			answer, err = http.DefaultClient.Do(request)
		}
	}
	if err != nil {
		r.Add(Problem, ServerFailed, subject, "Start the server: workflows-engine-mcp --transport http, with --listen for another address.", "no server answers at %s: %v", address, err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 600))
	switch said := strings.TrimSpace(string(text)); {
	case err == nil && answer.StatusCode == http.StatusOK && said == "ok":
		r.Add(OK, Server, subject, "", "the server at %s works", address)
	case answer.StatusCode == http.StatusServiceUnavailable:
		r.Add(Problem, ServerTrouble, subject, "Read the standard error of the server.", "the server at %s does not work: %s", address, said)
	default:
		r.Add(Warning, Server, subject, "Check the address. A proxy must pass on /healthz, too.", "%s answers %s, unlike the server", u, answer.Status)
	}
}
