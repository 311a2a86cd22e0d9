package doctor_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/doctor"
)

// TestAddress asks servers for their health, below the address that hosts have.
func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		text   string
		level  doctor.Level
		code   doctor.Code
	}{
		{http.StatusOK, "ok\n", doctor.OK, doctor.Server},
		{http.StatusServiceUnavailable, "the database is locked\n", doctor.Problem, doctor.ServerTrouble},
		{http.StatusNotFound, "?", doctor.Warning, doctor.Server},
		{http.StatusOK, "<html>", doctor.Warning, doctor.Server},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" || r.Header.Get("Authorization") != "" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.text)) // the test fails where nothing arrives
		}))
		var r doctor.Report
		r.Address(t.Context(), "host", server.URL+"/mcp")
		server.Close()
		if got := r.Findings; len(got) != 1 || got[0].Level != c.level || got[0].Code != c.code || (got[0].Fix == "") != (c.level == doctor.OK) {
			t.Errorf("%d %q: %+v", c.status, c.text, got)
		}
		if c.status == http.StatusServiceUnavailable && !strings.Contains(r.Findings[0].Message, "the database is locked") {
			t.Errorf("%+v", r.Findings)
		}
		r = doctor.Report{}
		if r.Address(t.Context(), "host", server.URL+"/mcp"); r.Problems() != 1 || r.Findings[0].Code != doctor.ServerFailed {
			t.Errorf("of a server that is gone: %+v", r.Findings)
		}
	}
}
