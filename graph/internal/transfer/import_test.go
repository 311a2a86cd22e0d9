package transfer_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// meeting is a store whose imports wait until all of them have found that the run is missing.
type meeting struct {
	history.Store
	all *sync.WaitGroup
}

func (m meeting) Import(ctx context.Context, in history.Import) error {
	m.all.Done()
	m.all.Wait()
	return m.Store.(history.Importer).Import(ctx, in)
}

// TestImportsOfOneFileAtOnce: one of them adds the tree, and the others find it there.
func TestImportsOfOneFileAtOnce(t *testing.T) {
	t.Parallel()
	from := historymem.New()
	source(t, from)
	var file bytes.Buffer
	if err := transfer.Export(t.Context(), from, "tree", transfer.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(*testing.T) history.Store{
		"memory": func(*testing.T) history.Store { return historymem.New() }, "file": inFile, "server": onServer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const imports = 3
			var all, ended sync.WaitGroup
			all.Add(imports)
			store := meeting{open(t), &all}
			var results [imports]*transfer.ImportResult
			for i := range imports {
				ended.Go(func() {
					res, err := transfer.Import(t.Context(), store, strings.NewReader(file.String()), nil)
					if err != nil || res.ExecutionID != "tree" {
						t.Errorf("%+v, %v", res, err)
					}
					results[i] = res
				})
			}
			ended.Wait()
			added := 0
			for _, res := range results {
				if res != nil && !res.Existed {
					added++
				}
			}
			if added != 1 {
				t.Errorf("%d imports have added the tree", added)
			}
		})
	}
}
