package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
)

// TestTheEndWaitsForNoFile: a look at the workflow folder that does not come back does not hold the end of the server up.
func TestTheEndWaitsForNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.workflow.yaml"), []byte(`document: {schema: s, name: a, version: '1'}
state_schema: {type: object}
nodes: [{id: a, type: start}, {id: z, type: end}]
edges: [{source: __start__, target: a}, {source: a, target: z}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		answer, asked := make(chan struct{}), make(chan struct{})
		e := engine{catalog: catalog.New(folder, catalog.Options{Verify: func(*definition.Document) error {
			close(asked)
			<-answer
			return nil
		}})}
		end, began := e.watchCatalog(t.Context(), true), time.Now()
		<-asked
		end()
		if took := time.Since(began); took > folderPatience {
			t.Errorf("the end took %v", took)
		}
		close(answer)
	})
}
