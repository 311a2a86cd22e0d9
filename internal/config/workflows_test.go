package config_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// definitionText is a small valid definition of that name; the version tells two of them apart.
func definitionText(name, version string) string {
	return `{"document":{"schema":"s","name":"` + name + `","version":"` + version + `"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
}

func TestWorkflowSources(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, definitionText("remote", "1"))
	}))
	t.Cleanup(site.Close)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "one.workflow.json"), []byte(definitionText("one", "1")), 0o600); err != nil {
		t.Fatal(err)
	}
	const variable = "WORKFLOW_ENGINE_WORKFLOW_SOURCES="
	open := variable + `{"allow":["` + site.URL + `/"],"privateNetworks":["127.0.0.1"]}`
	for _, tt := range []struct {
		name, setting, folder, ref string
		// says is part of the refusal, "" if the workflow is found.
		says string
	}{
		{"by address", open, folder, site.URL + "/a", ""},
		{"by name beside addresses", open, folder, "urn:example:one", ""},
		{"another address", open, folder, "https://example.org/a", "no allowed address"},
		{"private", variable + `{"allow":["` + site.URL + `"]}`, "", site.URL + "/a", "not a public address"},
		{"nothing allowed", "", folder, site.URL + "/a", "WORKFLOW_ENGINE_WORKFLOW_SOURCES"},
		{"no folder", "", "", "urn:example:one", "Options.Workflows"},
	} {
		c, err := load(t, environment(tt.setting))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Workflows(c.Catalog(tt.folder, nil)).ResolveWorkflow(t.Context(), tt.ref, "")
		if tt.says == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		e, ok := problem.As(err)
		if !ok || e.Code != problem.WorkflowNotFound || !strings.Contains(e.Error()+e.Hint, tt.says) {
			t.Errorf("%s: %v, want …%s…", tt.name, err, tt.says)
		}
	}
	for _, value := range []string{
		`{}`, `{"allow":[]}`, `{"allow":"https://example.org"}`, `{"allow":["example.org"]}`, `{"allow":[5]}`,
		`{"allow":["https://example.org"],"privateNetworks":["ten"]}`, `{"allow":["https://example.org"],"timeoutMs":0}`,
		`{"allow":["https://example.org"],"maxBytes":-1}`, `{"allow":["https://example.org"],"deny":[]}`, `[]`,
	} {
		if _, err := load(t, environment(variable+value)); !errors.Is(err, problem.UsageError) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
