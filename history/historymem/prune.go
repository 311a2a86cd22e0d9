package historymem

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/history"
)

var _ history.Pruner = (*Store)(nil)

// Prune deletes a page of trees of ended runs; see history.Pruner. Each call reads all runs.
func (s *Store) Prune(ctx context.Context, q history.PruneQuery) (history.PrunePage, error) {
	var page history.PrunePage
	if err := q.Check(); err != nil {
		return page, err
	}
	if err := s.enter(ctx); err != nil {
		return page, err
	}
	defer s.mu.Unlock()
	var after history.Cursor
	if q.Cursor != "" {
		var err error
		if after, err = history.ParseCursor(q.Cursor); err != nil {
			return page, err
		}
	}
	var trees [][]history.Execution
	for id := range s.runs {
		if root := s.tree(id); root != nil && q.Selects(root) && !s.notifies(root) && (q.Cursor == "" || older(history.CursorOf(&root[0]), after) > 0) {
			trees = append(trees, root)
		}
	}
	slices.SortFunc(trees, func(a, b []history.Execution) int { return older(history.CursorOf(&a[0]), history.CursorOf(&b[0])) })
	if len(trees) > q.Limit {
		trees = trees[:q.Limit]
		page.NextCursor = history.CursorOf(&trees[q.Limit-1][0]).String()
	}
	for _, tree := range trees {
		root := &tree[0]
		t := history.PrunedTree{
			ExecutionID: root.ID, DefinitionName: root.DefinitionName, Phase: root.Phase, UpdatedAt: root.UpdatedAt, Executions: len(tree),
		}
		for i := range tree {
			x := s.runs[tree[i].ID]
			t.Records += int64(len(x.rows))
			for _, r := range x.rows {
				t.Bytes += int64(len(r.payload))
			}
			if !q.DryRun {
				delete(s.runs, tree[i].ID) // an ended run has no owner
				s.dropDeliveries(tree[i].ID)
				delete(s.handled, tree[i].ID)
				s.links = slices.DeleteFunc(s.links, func(l history.Link) bool { return l.From == tree[i].ID || l.To == tree[i].ID })
			}
		}
		page.Trees = append(page.Trees, t)
	}
	return page, nil
}

// older orders runs by their last change, oldest first.
func older(a, b history.Cursor) int {
	return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ExecutionID, b.ExecutionID))
}

// tree returns a run and all subworkflows below it, or nil if the run is a subworkflow of a stored run.
func (s *Store) tree(id string) []history.Execution {
	for _, above := range history.Ancestors(id) {
		if s.runs[above] != nil {
			return nil
		}
	}
	tree := []history.Execution{*s.runs[id].execution()}
	for other, x := range s.runs {
		if history.Descends(other, id) {
			tree = append(tree, *x.execution())
		}
	}
	return tree
}

// PruneDefinitions deletes unused definitions; see history.Pruner.
func (s *Store) PruneDefinitions(ctx context.Context, dryRun bool) ([]history.StoredDefinition, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var hashes []string
	for _, x := range s.runs {
		hashes = append(hashes, x.execution().DefinitionHash)
		hashes = slices.AppendSeq(hashes, maps.Values(x.execution().Subworkflows))
	}
	all := make([]history.StoredDefinition, len(s.definitions))
	for i, d := range s.definitions {
		all[i] = d.StoredDefinition
	}
	out := history.Unneeded(all, hashes)
	if !dryRun {
		s.definitions = slices.DeleteFunc(s.definitions, func(d stored) bool {
			return slices.ContainsFunc(out, func(o history.StoredDefinition) bool { return o.Hash == d.Hash })
		})
	}
	return out, nil
}
