package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

// families are runs with the subworkflows that they have begun, those that began first before others.
type families map[string][]history.Execution

// familiesOf finds the subworkflows below some runs.
func familiesOf(ctx context.Context, e graph.Engine, roots []string) (families, error) {
	f := families{}
	for _, root := range roots {
		for q := (history.ListQuery{Below: root, Limit: 100}); ; {
			page, err := e.List(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, x := range page.Executions {
				f[x.Parent] = append(f[x.Parent], x)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
	}
	for _, children := range f {
		slices.SortFunc(children, func(a, b history.Execution) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
		})
	}
	return f, nil
}

// below goes through the subworkflows below a run, each before its own.
func (f families) below(id string, depth int, each func(x *history.Execution, depth int)) {
	for i := range f[id] {
		each(&f[id][i], depth)
		f.below(f[id][i].ID, depth+1, each)
	}
}
