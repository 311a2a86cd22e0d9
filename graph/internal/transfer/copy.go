package transfer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/processid"
)

// CopyOptions is graph.CopyOptions, which documents the fields.
type CopyOptions struct {
	Target     string
	CheckSteps CheckSteps
	Progress   func(done, of int)
}

// CopyResult is graph.CopyResult, which documents the fields.
type CopyResult struct {
	Copied, Existed   CopyCounts
	Moved             int
	KeptLimits        []string
	Left              []CopyLeft
	PendingDeliveries int
	// Source and Target are the findings of the check of both stores.
	Source, Target []history.Finding
}

// CopyCounts is graph.CopyCounts, which documents the fields.
type CopyCounts struct {
	Runs, Records, Definitions, Limits, Deliveries, Links, Keys int
}

// CopyLeft is graph.CopyLeft, which documents the fields.
type CopyLeft struct {
	ExecutionID string
	Err         error
}

// movedPrefix begins the reason of the cancel that ends a run in the source.
const movedPrefix = "moved by db copy to "

// copyLease is how long the copy owns the active runs of a tree. It is renewed for each tree.
const copyLease = 2 * time.Minute

// Copy copies all definitions and runs of a store into another one; see graph.Copy.
//
// The runs of a tree that have not ended are ended in the source first, then the records before that end are imported. So there is no moment
// at which both stores continue a run, and a copy that was interrupted in between finds the end, and imports what comes before it.
func Copy(ctx context.Context, from, to history.Store, o CopyOptions) (res *CopyResult, err error) {
	c := copier{from: from, to: to, o: o, process: copyProcess(), res: &CopyResult{}, there: map[string]bool{}, linked: map[string]string{}}
	defer func() {
		if failed := from.Release(context.WithoutCancel(ctx), c.process); err == nil {
			err = failed
		}
	}()
	if err := c.distinct(ctx); err != nil {
		return nil, err
	}
	if err := c.releaseGone(ctx); err != nil {
		return nil, err
	}
	if err := c.definitions(ctx); err != nil {
		return c.res, err
	}
	if err := c.limits(ctx); err != nil {
		return c.res, err
	}
	if err := c.keys(ctx); err != nil {
		return c.res, err
	}
	roots, err := c.roots(ctx)
	if err != nil {
		return c.res, err
	}
	for i, id := range roots {
		if err := ctx.Err(); err != nil {
			return c.res, err
		}
		err := c.tree(ctx, id)
		switch {
		case errors.Is(err, problem.LeaseHeld), errors.Is(err, problem.HistoryConflict), rejectsRun(err):
			c.res.Left = append(c.res.Left, CopyLeft{id, err})
		case errors.Is(err, problem.ExecutionNotFound): // deleted meanwhile
		case err != nil:
			return c.res, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(roots))
		}
	}
	for to, from := range c.linked {
		if c.there[to] && c.there[from] {
			c.res.Existed.Links++
		}
	}
	c.res.Existed.Links -= c.res.Copied.Links
	if err := c.pending(ctx); err != nil {
		return c.res, err
	}
	return c.res, c.verify(ctx)
}

type copier struct {
	from, to history.Store
	o        CopyOptions
	// process owns the runs in the source while they are copied.
	process string
	res     *CopyResult
	// there are the runs that are in the target, linked the origins of all runs with a link.
	there  map[string]bool
	linked map[string]string
}

// copyProcess names this copy, so that others can tell when its process has ended.
func copyProcess() string {
	name := "store-copy-" + uuid.NewString()
	if id := processid.Own(); id != "" {
		name += "/" + id
	}
	return name
}

// releaseGone ends the leases of processes of this machine that were killed, as an earlier copy may have been.
func (c *copier) releaseGone(ctx context.Context) error {
	roster, ok := history.As[history.Roster](c.from)
	if !ok {
		return nil
	}
	processes, err := roster.Processes(ctx)
	for _, p := range processes {
		if err == nil && processid.Gone(p.Name) {
			err = c.from.Release(ctx, p.Name)
		}
	}
	return err
}

// distinct refuses one store under two names, which a lease reveals. A copy would end its active runs, and continue them nowhere.
func (c *copier) distinct(ctx context.Context) error {
	if err := c.from.Renew(ctx, c.process, copyLease); err != nil {
		return err
	}
	roster, ok := history.As[history.Roster](c.to)
	if !ok {
		return nil
	}
	processes, err := roster.Processes(ctx)
	if slices.ContainsFunc(processes, func(p history.Process) bool { return p.Name == c.process }) {
		return problem.New(problem.UsageError, "the source and the target are the same store").WithHint("Name two stores.")
	}
	return err
}

// definitions copies the definitions, those stored first before the others: the newest one of a name stays the newest.
func (c *copier) definitions(ctx context.Context) error {
	var hashes []string
	for cursor := ""; ; {
		page, err := c.from.Definitions(ctx, cursor, 100)
		if err != nil {
			return err
		}
		for _, d := range page.Definitions {
			hashes = append(hashes, d.Hash)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, hash := range slices.Backward(hashes) {
		d, err := c.from.Definition(ctx, hash)
		if errors.Is(err, problem.DefinitionNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		switch _, err := c.to.Definition(ctx, hash); {
		case err == nil:
			c.res.Existed.Definitions++
			continue
		case !errors.Is(err, problem.DefinitionNotFound):
			return err
		}
		if err := c.to.PutDefinition(ctx, d); err != nil {
			return err
		}
		c.res.Copied.Definitions++
	}
	return nil
}

// limits copies the shared limits, before a run continues in the target. A class that has a limit there keeps it.
func (c *copier) limits(ctx context.Context) error {
	from, ok := history.As[history.Limiter](c.from)
	to, can := history.As[history.Limiter](c.to)
	if !ok || !can {
		return nil
	}
	here, err := from.SharedLimits(ctx)
	if err != nil || len(here) == 0 {
		return err
	}
	there, err := to.SharedLimits(ctx)
	if err != nil {
		return err
	}
	var missing []history.SharedLimit
	for i := range here {
		l := here[i].SharedLimit
		switch at := slices.IndexFunc(there, func(u history.LimitUse) bool { return u.Class == l.Class }); {
		case at < 0:
			missing = append(missing, l)
		case there[at].SharedLimit != l:
			c.res.KeptLimits = append(c.res.KeptLimits, l.Class)
		default:
			c.res.Existed.Limits++
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = to.SetLimits(ctx, missing...)
	if err == nil {
		c.res.Copied.Limits = len(missing)
	}
	return err
}

// keys copies the keys that processes share. A key of the target stays.
func (c *copier) keys(ctx context.Context) error {
	from, ok := history.As[history.Attacher](c.from)
	to, can := history.As[history.Attacher](c.to)
	if !ok || !can {
		return nil
	}
	keys, err := from.Keys(ctx)
	if err != nil || len(keys) == 0 {
		return err
	}
	added, err := to.Attach(ctx, history.Attachments{Keys: keys})
	c.res.Copied.Keys, c.res.Existed.Keys = added.Keys, len(keys)-added.Keys
	return err
}

// roots returns the runs at the roots of trees, those first that changed longest ago. Subworkflows whose parents are missing are roots, too.
func (c *copier) roots(ctx context.Context) ([]string, error) {
	var ids []string
	parents := map[string]string{}
	err := each(ctx, c.from, history.ListQuery{Oldest: true}, func(e *history.Execution) error {
		ids, parents[e.ID] = append(ids, e.ID), e.Parent
		return nil
	})
	return slices.DeleteFunc(ids, func(id string) bool {
		_, stored := parents[parents[id]]
		return stored
	}), err
}

// each calls do for each run that a query selects.
func each(ctx context.Context, store history.Store, q history.ListQuery, do func(*history.Execution) error) error {
	for q.Limit = 100; ; {
		page, err := store.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if err := do(&page.Executions[i]); err != nil {
				return err
			}
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

// tree copies a run with its subworkflows.
func (c *copier) tree(ctx context.Context, root string) error {
	const attempts = 3
	for i := 1; ; i++ {
		err := c.try(ctx, root)
		if i == attempts || !errors.Is(err, problem.HistoryConflict) { // an answer arrived between reading and ending the run
			return err
		}
	}
}

func (c *copier) try(ctx context.Context, root string) (err error) {
	x := exporter{Source: c.from, seen: map[string]bool{}}
	active, err := c.own(ctx, root)
	if err != nil {
		return err
	}
	if len(active) > 0 {
		defer func() {
			if failed := c.from.Disown(context.WithoutCancel(ctx), c.process, active...); err == nil {
				err = failed
			}
		}()
	}
	if err := x.collect(ctx, root); err != nil {
		return err
	}
	ends, elsewhere := withoutMoves(x.runs, isMoveToStore)
	if elsewhere == c.moveReason() {
		elsewhere = ""
	}
	file := &runfile.File{ExecutionID: root, Runs: x.runs, Definitions: x.definitions}
	copied, err := c.copied(ctx, file, active)
	if err != nil {
		return err
	}
	if !copied && elsewhere != "" {
		return rejected(root, problem.DuplicateExecutionID, "If that copy was interrupted, repeat it with the same target. Else copy from that store.",
			"was %s, which continues it", elsewhere)
	}
	if !copied && len(active) > 0 {
		if err := c.rehearse(ctx, file); err != nil {
			return err
		}
	}
	moved := 0
	for _, r := range x.runs {
		if !slices.Contains(active, r.ExecutionID) {
			continue
		}
		if err := c.end(ctx, r); err != nil {
			return err
		}
		moved++
	}
	counts := &c.res.Existed
	if !copied {
		if _, err = importFile(ctx, c.to, file, c.o.CheckSteps); err != nil {
			return err
		}
		counts, moved = &c.res.Copied, moved+ends
	}
	c.res.Moved += moved
	for _, r := range x.runs {
		c.there[r.ExecutionID] = true
		counts.Runs++
		counts.Records += len(r.Records)
	}
	return c.attach(ctx, x.runs)
}

// attach copies the links and deliveries of runs that are in the target. A link is copied with the second of its runs.
func (c *copier) attach(ctx context.Context, runs []runfile.Run) error {
	to, ok := history.As[history.Attacher](c.to)
	if !ok {
		return nil
	}
	var links []history.Link
	for i := range runs {
		of, err := c.from.Links(ctx, runs[i].ExecutionID)
		if err != nil {
			return err
		}
		for _, l := range of {
			c.linked[l.To] = l.From
		}
		links = append(links, of...)
	}
	if len(links) > 0 {
		added, err := to.Attach(ctx, history.Attachments{Links: links})
		if err != nil {
			return err
		}
		c.res.Copied.Links += added.Links
	}
	for i := range runs {
		if err := c.deliveries(ctx, to, runs[i].ExecutionID); err != nil {
			return err
		}
	}
	return nil
}

// deliveries copies the deliveries of a run. One that is pending moves: it is settled in the source first, so that no two processes send it, and a
// copy that was interrupted then finds it moved to this target.
func (c *copier) deliveries(ctx context.Context, to history.Attacher, id string) error {
	var all []history.Delivery
	for q := (history.DeliveryQuery{ExecutionID: id, Bodies: true}); ; {
		page, err := c.from.ListDeliveries(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, page.Deliveries...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.Reverse(all) // the oldest first
	var take []history.Delivery
	for i := range all {
		d := &all[i]
		if d.State == history.DeliveryPending {
			moved, err := c.moveDelivery(ctx, d)
			if err != nil {
				return err
			}
			if !moved {
				continue
			}
		}
		if n := len(d.Tries); d.State == history.DeliveryMoved && n > 0 && d.Tries[n-1].Error == c.moveReason() {
			d.State, d.Attempts, d.Tries = history.DeliveryPending, d.Attempts-1, d.Tries[:n-1]
		}
		take = append(take, *d)
	}
	if len(take) == 0 {
		return nil
	}
	added, err := to.Attach(ctx, history.Attachments{Deliveries: take})
	c.res.Copied.Deliveries += added.Deliveries
	c.res.Existed.Deliveries += len(take) - added.Deliveries
	return err
}

// moveDelivery settles a pending delivery in the source. It is false for one that a process of the source sends now, and for one that the target
// has already: each of these stores sends what it has.
func (c *copier) moveDelivery(ctx context.Context, d *history.Delivery) (moved bool, err error) {
	there, err := c.to.ListDeliveries(ctx, history.DeliveryQuery{DeliveryID: d.ID, Limit: 1})
	if err != nil || len(there.Deliveries) > 0 {
		return false, err
	}
	now, err := c.from.Now(ctx)
	if err != nil {
		return false, err
	}
	attempt := d.Attempts + 1
	_, claimed, err := c.from.ClaimDelivery(ctx, history.DeliveryClaim{DeliveryID: d.ID, Attempt: attempt, Process: c.process, TTL: copyLease, At: now})
	if err != nil || !claimed {
		return false, err
	}
	receipt := history.Receipt{Outcome: history.SendStopped, Error: c.moveReason()}
	err = c.from.SettleDelivery(context.WithoutCancel(ctx), history.Settlement{
		DeliveryID: d.ID, Attempt: attempt, At: now, Receipt: receipt, State: history.DeliveryMoved, Due: d.Due, Step: d.Step,
	})
	d.State, d.Attempts = history.DeliveryMoved, attempt
	d.Tries = append(d.Tries, history.DeliveryAttempt{Number: attempt, Process: c.process, BeganAt: now, EndedAt: now, Outcome: receipt.Outcome, Error: receipt.Error})
	return err == nil, err
}

// own claims the active runs of a tree, so that no process of the source continues them. It returns LEASE_HELD if another process does.
func (c *copier) own(ctx context.Context, root string) (active []string, err error) {
	ids, err := c.activeRuns(ctx, root)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := c.from.Renew(ctx, c.process, copyLease); err != nil {
		return nil, err
	}
	claimed, err := c.from.Claim(ctx, c.process, ids...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if slices.Contains(claimed, id) {
			continue
		}
		e, err := c.from.Execution(ctx, id)
		if err == nil && e.Phase.Terminal() {
			continue // it has ended meanwhile
		}
		if err == nil {
			err = problem.New(problem.LeaseHeld, "run %q is driven by a process of the source", id).
				WithPlace(problem.Place{ExecutionID: id}).
				WithHint("Stop the processes that use the source, then copy again.")
		}
		if len(claimed) > 0 {
			err = errors.Join(err, c.from.Disown(ctx, c.process, claimed...))
		}
		return nil, err
	}
	return claimed, nil
}

// activeRuns returns the runs of a tree that have not ended, the root first.
func (c *copier) activeRuns(ctx context.Context, root string) (ids []string, err error) {
	e, err := c.from.Execution(ctx, root)
	if err != nil {
		return nil, err
	}
	if !e.Phase.Terminal() {
		ids = append(ids, root)
	}
	err = each(ctx, c.from, history.ListQuery{Below: root, Phases: history.OpenPhases()}, func(e *history.Execution) error {
		ids = append(ids, e.ID)
		return nil
	})
	return ids, err
}

// moveReason is the reason of a cancel that ends a run in the source.
func (c *copier) moveReason() string {
	return problem.Excerpt(movedPrefix+c.o.Target, problem.MaxText)
}

// isMoveToStore reports whether a reason is that of a copy to any target.
func isMoveToStore(reason string) bool { return strings.HasPrefix(reason, movedPrefix) }

// withoutMoves removes the ends that an earlier move wrote from the runs, and returns their number and the reason of the last one. It also removes
// the cancel of a subworkflow whose parent ended so. Both kinds keep the tasks of the run, as no other cancel by a parent does.
func withoutMoves(runs []runfile.Run, isMove func(reason string) bool) (moved int, reason string) {
	ended := map[string]bool{}
	for i := range runs {
		r := &runs[i]
		if end := &r.Records[len(r.Records)-1]; end.Name != history.ExecutionCancelled || !end.Payload.KeepTasks {
			continue
		}
		at := slices.IndexFunc(r.Records, func(rec history.Record) bool {
			why := rec.Payload.Reason
			return rec.Name == history.CancelExecution && (isMove(why) || ended[parentID(r)] && strings.HasPrefix(why, "the parent run "))
		})
		if at > 0 {
			if why := r.Records[at].Payload.Reason; isMove(why) {
				reason = why
			}
			r.Records, r.Handled = r.Records[:at], nil
			ended[r.ExecutionID] = true
			moved++
		}
	}
	return moved, reason
}

// parentID returns the parent of a run, "" without one.
func parentID(r *runfile.Run) string { return r.Records[0].Payload.ParentExecutionID }

// copied reports whether all runs of a tree are in the target, where they may have continued since. A run that is active in the source and
// has moved there from the target cannot return.
func (c *copier) copied(ctx context.Context, file *runfile.File, active []string) (bool, error) {
	found := 0
	for i := range file.Runs {
		r := &file.Runs[i]
		stored, err := c.to.Read(ctx, r.ExecutionID, 1, len(r.Records)+1)
		if err != nil {
			return false, err
		}
		if len(stored) == 0 {
			continue
		}
		found++
		for j := range r.Records {
			if j >= len(stored) || !sameRecord(r.ExecutionID, &stored[j], &r.Records[j]) {
				return false, rejected(r.ExecutionID, problem.DuplicateExecutionID, "Copy into another database, or delete the run there first.",
					"exists in the target and differs from record %d on", j+1)
			}
		}
		if n := len(r.Records); n < len(stored) && stored[n].Name == history.CancelExecution && isMoveToStore(stored[n].Payload.Reason) && slices.Contains(active, r.ExecutionID) {
			return false, rejected(r.ExecutionID, problem.DuplicateExecutionID, "Copy into another database, or delete the run there first.",
				"exists in the target, where it was %s", stored[n].Payload.Reason)
		}
	}
	if found > 0 && found < len(file.Runs) {
		return false, rejected(file.ExecutionID, problem.DuplicateExecutionID, "Copy into another database, or delete the runs there first.",
			"has %d of its %d runs in the target", found, len(file.Runs))
	}
	return found > 0, nil
}

// rehearse returns the error that the import of a tree would have, before the source is changed.
func (c *copier) rehearse(ctx context.Context, file *runfile.File) error {
	_, err := importFile(ctx, rehearsal{c.to}, file, c.o.CheckSteps)
	return err
}

// rehearsal is a store that accepts imports and does nothing.
type rehearsal struct{ history.Store }

func (rehearsal) Import(context.Context, history.Import) error { return nil }

// end ends a run in the source, at the records that were read: the run is cancelled, and its tasks at agents are kept for the target.
func (c *copier) end(ctx context.Context, r runfile.Run) error {
	now, err := c.from.Now(ctx)
	if err != nil {
		return err
	}
	e, err := c.from.Execution(ctx, r.ExecutionID)
	if err != nil {
		return err
	}
	seq := r.Records[len(r.Records)-1].Seq
	if e.Seq != seq {
		return problem.New(problem.HistoryConflict, "run %q has continued while it was copied", r.ExecutionID).
			WithPlace(problem.Place{ExecutionID: r.ExecutionID}).WithHint("Copy again.")
	}
	p := history.Payload{NodeID: e.CurrentNodeID, Reason: c.moveReason()}
	end := p
	end.KeepTasks = true
	records := []history.Record{
		{Seq: seq + 1, Kind: history.Command, Name: history.CancelExecution, Payload: p, CreatedAt: now},
		{Seq: seq + 2, Kind: history.Event, Name: history.ExecutionCancelled, Payload: end, CreatedAt: now},
	}
	run.Sign(ctx, records)
	e.ApplyAll(records)
	return c.from.Append(context.WithoutCancel(ctx), history.Batch{
		ExecutionID: r.ExecutionID, ExpectedSeq: seq, Records: records, Execution: e, SetTimers: true, Owner: c.process,
	})
}

// pending counts the deliveries that only a process of the source can send.
func (c *copier) pending(ctx context.Context) error {
	for q := (history.DeliveryQuery{States: []history.DeliveryState{history.DeliveryPending}, Limit: 100}); ; {
		page, err := c.from.ListDeliveries(ctx, q)
		if err != nil {
			return err
		}
		c.res.PendingDeliveries += len(page.Deliveries)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

// verify checks both stores, and that each run of the source is in the target. A run that was started in the source meanwhile is left.
func (c *copier) verify(ctx context.Context) error {
	left := func(id string) bool {
		return slices.ContainsFunc(c.res.Left, func(l CopyLeft) bool { return l.ExecutionID == id || history.Descends(id, l.ExecutionID) })
	}
	err := history.Each(ctx, c.from, "", func(e *history.Execution) error {
		_, err := c.to.Execution(ctx, e.ID)
		switch {
		case !errors.Is(err, problem.ExecutionNotFound):
			return err
		case !left(e.ID):
			err := problem.New(problem.HistoryConflict, "run %q was started while the others were copied", e.ID)
			c.res.Left = append(c.res.Left, CopyLeft{e.ID, err.WithPlace(problem.Place{ExecutionID: e.ID}).WithHint("Copy again.")})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := Verify(ctx, c.from, "", false, c.o.CheckSteps, func(f history.Finding) { c.res.Source = append(c.res.Source, f) }); err != nil {
		return err
	}
	_, err = Verify(ctx, c.to, "", false, c.o.CheckSteps, func(f history.Finding) { c.res.Target = append(c.res.Target, f) })
	return err
}
