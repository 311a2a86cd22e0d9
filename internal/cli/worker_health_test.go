package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// full is a store that can be read and not written.
type full struct{ history.Store }

func (full) Probe(context.Context) error { return errors.New("full") }

func TestWorkerHealth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store history.Store
		want  int
		text  string
	}{
		"it works":           {historymem.New(), http.StatusOK, "ok\n"},
		"nothing is written": {full{historymem.New()}, http.StatusServiceUnavailable, "unavailable\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, stop, err := serveHealth("127.0.0.1:0", c.store)
			if err != nil {
				t.Fatal(err)
			}
			defer stop() //nolint:errcheck // the test is over
			res, err := http.Get("http://" + at.String() + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != c.want || string(text) != c.text {
				t.Errorf("%d %s, %v", res.StatusCode, text, err)
			}
		})
	}
	if _, _, err := serveHealth("nowhere", historymem.New()); err == nil {
		t.Error("it listens nowhere")
	}
}
