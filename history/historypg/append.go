package historypg

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/shortform"
)

// The forms of a record's payload.
const (
	whole = 0
	short = 1
	given = 2 // the text of an import, which this engine would not write
)

const doingAppend = "the records were not appended"

// Append adds a batch to one run's history; see history.Store. It is one statement, whose first part changes the row of the run; all others depend
// on the row that it returns. Without that row nothing is written, and only then is the reason looked up.
func (s *Store) Append(ctx context.Context, b history.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := s.mayWrite(ctx, doingAppend); err != nil { // before the state is read
		return err
	}
	a := s.newAppending(ctx, &b)
	signed, added := false, false
	for d := range b.Definitions() {
		_, known := s.known.Load(d.Hash)
		signed, added = signed || len(d.Signatures) > 0, added || !known
	}
	p := a.pending()
	var err error
	switch {
	case b.Link != nil, b.EndsFork(), signed:
		p.found, err = true, s.transact(ctx, doingAppend, false, a.stepwise)
	case added: // two groups that add the same definitions would wait for each other
		err = s.write(ctx, doingAppend, false, func(ctx context.Context, c *pgxpool.Conn) error { return send(ctx, c.Conn(), []*pending{p}) })
	default:
		err = s.share(ctx, doingAppend, p)
	}
	if err == nil && !p.found {
		err = s.read(context.WithoutCancel(ctx), doingAppend, func(q queries) error { return a.refusal(ctx, q) })
	}
	if err != nil {
		return err
	}
	for d := range b.Definitions() {
		s.known.Store(d.Hash, nil)
	}
	if b.Bytes != nil {
		*b.Bytes = a.bytes
	}
	return nil
}

// appending is a call of Append.
type appending struct {
	store *Store
	batch *history.Batch
	text  string
	args  []any
	size  int

	bytes int64
	// tells is the number of notifications that the statement sends, told what they return.
	tells int
	told  [2]*string
}

func (s *Store) newAppending(ctx context.Context, b *history.Batch) *appending {
	e := shortform.Encoder{Batch: b, WholeBytes: s.options.WholeBytes, ValueBytes: s.options.ValueBytes, Prior: &priorRow{ctx, s, b.ExecutionID}}
	r := rows{names: make([]string, len(b.Records)), payloads: make([]string, len(b.Records)), at: make([]int64, len(b.Records))}
	var buffer []byte
	for i := range b.Records {
		buffer = e.Append(buffer[:0], i)
		r.bytes += int64(len(buffer))
		r.names[i], r.payloads[i], r.at[i] = string(b.Records[i].Name), escaped(string(buffer)), b.Records[i].CreatedAt.UnixMilli()
	}
	for _, seq := range e.Rows() {
		if r.forms == nil {
			r.forms = make([]int16, len(b.Records))
		}
		r.forms[seq-b.ExpectedSeq-1] = short
	}
	r.blobs = e.Blobs()
	return s.compose(b, &r)
}

// rows are the records of a batch as they are stored.
type rows struct {
	names, payloads []string
	at              []int64
	forms           []int16 // nil if all are whole
	blobs           []shortform.Blob
	bytes           int64 // of the payloads
}

// The parts of the statement; see compose.
const (
	begins = `moved AS (INSERT INTO @runs AS r (execution_id, seq, phase, definition_name, created_at, updated_at, listed_at, driven, bytes, owner, disowned, position_seq, position, projection)
VALUES (`
	continues = `moved AS (UPDATE @runs AS r SET `
	ownable   = `(r.owner IS NULL OR r.owner = {me} OR NOT EXISTS (SELECT 1 FROM @processes WHERE process = r.owner AND {live}))`

	addRecords = `, added AS (INSERT INTO @records (run, seq, name, at, form, payload)
SELECT m.run, {first} + x.n, x.name, x.at, `
	addLabels  = `, labelled AS (INSERT INTO @run_labels (run, name, value) SELECT m.run, x.name, x.value FROM moved AS m, unnest({names}, {values}) AS x (name, value) ON CONFLICT (run, name) DO NOTHING)`
	addBlobs   = `, stored AS (INSERT INTO @blobs (run, hash, content) SELECT m.run, x.hash, x.content FROM moved AS m, unnest({hashes}, {contents}) AS x (hash, content) ON CONFLICT (run, hash) DO NOTHING)`
	dropTimers = `, dropped AS (DELETE FROM @timers AS t USING moved AS m WHERE t.run = m.run`
	addTimers  = `, timed AS (INSERT INTO @timers AS t (run, key, due) SELECT m.run, x.key, x.due FROM moved AS m, unnest({keys}, {dues}) AS x (key, due)
ON CONFLICT (run, key) DO UPDATE SET due = excluded.due WHERE t.due <> excluded.due)`
	addDefinitions = `, defined AS (INSERT INTO @definitions (hash, name, version, text, signatures, stored_at)
SELECT x.hash, x.name, x.version, x.text, x.signatures, {now} FROM moved AS m, unnest({hashes}, {names}, {versions}, {texts}, {signatures}) WITH ORDINALITY AS x (hash, name, version, text, signatures, n)
WHERE NOT EXISTS (SELECT 1 FROM @definitions AS d WHERE d.hash = x.hash) ORDER BY x.n ON CONFLICT (hash) DO NOTHING)`
	addEvents = `, told AS (INSERT INTO @delivery_events (event_id, run, seq, event, created_at, body)
SELECT x.id, m.run, {seq}, x.event, x.at, x.body FROM moved AS m, unnest({ids}, {events}, {ats}, {bodies}) WITH ORDINALITY AS x (id, event, at, body, n) ORDER BY x.n ON CONFLICT (event_id) DO NOTHING)`
	addDeliveries = `, sent AS (INSERT INTO @deliveries (delivery_id, event_id, run, target, state, due)
SELECT x.id, x.event, m.run, x.target, 'pending', x.due FROM moved AS m, unnest({ids}, {events}, {targets}, {dues}) WITH ORDINALITY AS x (id, event, target, due, n) ORDER BY x.n)`
	dropReady = `, unready AS (DELETE FROM @ready AS q USING moved AS m WHERE q.run = m.run)`
	// addReady gives a run its turn among the ready runs; a ready run moves only if its lane or priority changes.
	addReady = `INSERT INTO @ready AS q (run, lane, priority, turn, tenant, since)
SELECT m.run, x.lane, x.priority, greatest(
        coalesce((SELECT max(o.turn) + 1 FROM @ready AS o WHERE o.tenant = x.tenant AND o.run <> m.run), 0),
        coalesce((SELECT min(o.turn) FROM @ready AS o WHERE o.lane = x.lane AND o.priority = x.priority AND o.run <> m.run), 0)), x.tenant, {now}
FROM {source} AS m, (SELECT {lane} AS lane, {priority} AS priority, {tenant} AS tenant) AS x
WHERE m.owner IS NULL AND m.phase NOT IN {ended}
ON CONFLICT (run) DO UPDATE SET lane = excluded.lane, priority = excluded.priority, turn = excluded.turn, tenant = excluded.tenant
WHERE q.lane <> excluded.lane OR q.priority <> excluded.priority`
)

// compose writes the statement of a batch. It has only the parts that the batch needs: runs repeat a handful of texts.
func (s *Store) compose(b *history.Batch, r *rows) *appending {
	a := &appending{store: s, batch: b, size: int(r.bytes)}
	var st statement
	st.args = append(st.args, s.at())
	e := &b.Execution
	ends, starts := e.Phase.Terminal(), b.ExpectedSeq == 0 || slices.ContainsFunc(b.Records, func(r history.Record) bool { return r.Name == history.ExecutionStarted })
	owned := b.Owner != "" && !b.Disown && !ends
	driven := int16(0)
	if e.NeedsDriver() {
		driven = 1
	}
	at := e.UpdatedAt.UnixMilli()
	part := func(text string, args ...any) { // of name, kind and value
		var fill []string
		for i := 0; i < len(args); i += 3 {
			fill = append(fill, "{"+args[i].(string)+"}", st.arg(args[i+2], args[i+1].(string)))
		}
		st.add(strings.NewReplacer(fill...).Replace(text))
	}
	st.add("WITH {clock}, ")
	id, seq := st.arg(key(b.ExecutionID), "text"), st.arg(e.Seq, "bigint")
	phase, updated, needs := st.arg(string(e.Phase), "text"), st.arg(at, "bigint"), st.arg(driven, "smallint")
	listed, projection := st.arg(listedAt(at), "bigint"), st.arg(escaped(string(e.AppendText(nil))), "text")
	blobs := dedupe(r.blobs)
	hashes, contents, large := make([]string, len(blobs)), make([]string, len(blobs)), int64(0)
	for i, x := range blobs {
		hashes[i], contents[i] = x.Hash, escaped(x.Content)
		large += int64(len(x.Content))
		a.size += len(x.Content)
	}
	if b.ExpectedSeq == 0 {
		a.begin(&st, id, seq, phase, updated, listed, needs, projection, owned, ends, r.bytes+large)
	} else {
		st.add(continues, "seq = ", seq, ", phase = ", phase, ", updated_at = ", updated, ", listed_at = ", listed, ", projection = ", projection)
		if starts {
			st.add(", definition_name = ", st.arg(escaped(e.DefinitionName), "text"), ", created_at = ", st.arg(e.CreatedAt.UnixMilli(), "bigint"))
		}
		st.add(", bytes = r.bytes + ", st.arg(r.bytes, "bigint"))
		if len(blobs) > 0 { // those that the run does not have yet
			st.add(" + coalesce((SELECT sum(x.size) FROM unnest(", st.arg(hashes, "text[]"), ", ", st.arg(sizes(blobs), "bigint[]"),
				") AS x (hash, size) WHERE NOT EXISTS (SELECT 1 FROM @blobs AS o WHERE o.run = r.run AND o.hash = x.hash)), 0)::bigint")
		}
		switch {
		case ends:
			st.add(", position_seq = 0, position = NULL")
		case b.Position != nil:
			st.add(", position_seq = ", seq, ", position = ", st.arg(b.Position, "bytea"))
		}
		me := ""
		if b.Owner != "" {
			me = st.arg(escaped(b.Owner), "text")
		}
		switch {
		case ends:
			st.add(", owner = NULL, disowned = NULL, driven = ", needs)
		case b.Disown:
			st.add(", owner = NULL, disowned = {now}, driven = ", driveOf(needs, b.Ready != nil))
		case owned:
			st.add(", owner = ", me, ", disowned = NULL, driven = ", needs)
		default: // a run without an owner may be ready
			st.add(", driven = CASE WHEN r.owner IS NULL AND ")
			if b.Ready == nil {
				st.add("r.driven = 2 AND ")
			}
			st.add(needs, " = 1 THEN 2 ELSE ", needs, " END")
		}
		st.add(" WHERE r.execution_id = ", id, " AND r.seq = ", st.arg(b.ExpectedSeq, "bigint"), " AND r.phase <> 'deleted'")
		if me != "" {
			st.add(" AND ", strings.ReplaceAll(ownable, "{me}", me))
		}
	}
	st.add(" RETURNING r.run, r.owner, r.phase, r.bytes)")

	if len(b.Records) > 0 {
		part(addRecords, "first", "bigint", b.ExpectedSeq)
		if r.forms == nil {
			st.add("0")
		} else {
			st.add("x.form")
		}
		st.add(", x.payload FROM moved AS m, unnest(", st.arg(r.names, "text[]"), ", ", st.arg(r.at, "bigint[]"), ", ", st.arg(r.payloads, "text[]"))
		if r.forms == nil {
			st.add(") WITH ORDINALITY AS x (name, at, payload, n))")
		} else {
			st.add(", ", st.arg(r.forms, "smallint[]"), ") WITH ORDINALITY AS x (name, at, payload, form, n))")
		}
	}
	if starts && len(e.Labels) > 0 {
		var names, values []string
		for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
			names, values = append(names, escaped(name)), append(values, escaped(e.Labels[name]))
		}
		part(addLabels, "names", "text[]", names, "values", "text[]", values)
	}
	if len(blobs) > 0 {
		part(addBlobs, "hashes", "text[]", hashes, "contents", "text[]", contents)
	}
	a.timers(&st, part, ends)
	a.definitions(part)
	a.deliveries(part)
	if owned || ends {
		st.add(dropReady)
	}
	ready := b.Ready != nil && !owned && !ends
	if ready {
		st.add(", readied AS (")
		part(strings.ReplaceAll(addReady, "{source}", "moved"), "lane", "text", escaped(b.Ready.Lane.String()), "priority", "bigint", int64(b.Ready.Priority), "tenant", "text", escaped(b.Ready.Tenant))
		st.add(" RETURNING 1)")
	}
	st.add(" SELECT m.bytes")
	if channel := s.runsChannel; channel != "" && a.notifies() {
		st.add(", pg_notify(", st.arg(channel, "text"), ", ", st.arg(strconv.FormatInt(e.Seq, 10)+"|"+key(b.ExecutionID), "text"), ")::text")
		a.tells++
	}
	if channel := s.readyChannel; channel != "" && ready && s.notifiesReady(b.Ready.Lane) {
		st.add(", (SELECT pg_notify(", st.arg(channel, "text"), ", '')::text FROM readied LIMIT 1)")
		a.tells++
	}
	st.add(" FROM moved AS m")
	a.text, a.args = s.texts.of(st.text.String()), st.args
	return a
}

// driveOf is the column driven of a run without an owner.
func driveOf(needs string, ready bool) string {
	if ready {
		return needs + " * 2::smallint"
	}
	return needs
}

func (a *appending) begin(st *statement, id, seq, phase, updated, listed, needs, projection string, owned, ends bool, bytes int64) {
	b := a.batch
	owner, disowned, position, positionSeq := "NULL", "NULL", "NULL", "0"
	if owned {
		owner = st.arg(escaped(b.Owner), "text")
	} else if b.Ready != nil && !ends {
		needs = driveOf(needs, true)
	}
	if b.Disown && !ends {
		disowned = "{now}"
	}
	if b.Position != nil && !ends {
		position, positionSeq = st.arg(b.Position, "bytea"), seq
	}
	st.add(begins, strings.Join([]string{
		id, seq, phase, st.arg(escaped(b.Execution.DefinitionName), "text"), st.arg(b.Execution.CreatedAt.UnixMilli(), "bigint"), updated, listed, needs, st.arg(bytes, "bigint"),
		owner, disowned, positionSeq, position, projection,
	}, ", "), ") ON CONFLICT (execution_id) DO NOTHING")
}

func (a *appending) timers(st *statement, part func(text string, args ...any), ends bool) {
	b := a.batch
	if !b.SetTimers && !ends {
		return
	}
	if b.ExpectedSeq > 0 {
		part(dropTimers)
	}
	var keys []string
	var dues []int64
	if !ends {
		for i := range b.Timers {
			keys, dues = append(keys, escaped(b.Timers[i].Key)), append(dues, history.CeilMillis(b.Timers[i].Due))
		}
	}
	if len(keys) == 0 {
		if b.ExpectedSeq > 0 {
			st.add(")")
		}
		return
	}
	if b.ExpectedSeq > 0 {
		part(` AND t.key <> ALL ({keys}))`, "keys", "text[]", keys)
	}
	part(addTimers, "keys", "text[]", keys, "dues", "bigint[]", dues)
}

func (a *appending) definitions(part func(text string, args ...any)) {
	var hashes, names, versions, texts, signatures []string
	for d := range a.batch.Definitions() {
		if slices.Contains(hashes, d.Hash) {
			continue
		}
		hashes, names, versions, texts = append(hashes, escaped(d.Hash)), append(names, escaped(d.Name)), append(versions, escaped(d.Version)), append(texts, escaped(string(d.Text)))
		signatures = append(signatures, signatureLines(history.AddSignatures(nil, d.Signatures)))
		a.size += len(d.Text)
	}
	if len(hashes) > 0 {
		part(addDefinitions, "hashes", "text[]", hashes, "names", "text[]", names, "versions", "text[]", versions, "texts", "text[]", texts, "signatures", "text[]", signatures)
	}
}

func (a *appending) deliveries(part func(text string, args ...any)) {
	ds := a.batch.Deliveries
	if len(ds) == 0 {
		return
	}
	var eventIDs, events, bodies []string
	var ats []int64
	ids, of, targets, dues := make([]string, len(ds)), make([]string, len(ds)), make([]string, len(ds)), make([]int64, len(ds))
	for i := range ds {
		d := &ds[i]
		if event := escaped(d.EventID); !slices.Contains(eventIDs, event) {
			eventIDs, events, bodies = append(eventIDs, event), append(events, escaped(string(d.Event))), append(bodies, escaped(string(d.Body)))
			ats = append(ats, d.CreatedAt.UnixMilli())
			a.size += len(d.Body)
		}
		ids[i], of[i], targets[i], dues[i] = escaped(d.ID), escaped(d.EventID), escaped(d.Target), history.CeilMillis(d.Due)
	}
	part(addEvents, "seq", "bigint", a.batch.Execution.Seq, "ids", "text[]", eventIDs, "events", "text[]", events, "ats", "bigint[]", ats, "bodies", "text[]", bodies)
	part(addDeliveries, "ids", "text[]", ids, "events", "text[]", of, "targets", "text[]", targets, "dues", "bigint[]", dues)
}

func dedupe(blobs []shortform.Blob) (out []shortform.Blob) {
	seen := map[string]bool{}
	for _, b := range blobs {
		if !seen[b.Hash] {
			seen[b.Hash] = true
			out = append(out, b)
		}
	}
	return out
}

func sizes(blobs []shortform.Blob) []int64 {
	out := make([]int64, len(blobs))
	for i := range blobs {
		out[i] = int64(len(blobs[i].Content))
	}
	return out
}

// second is the precision of the list indexes in milliseconds.
const second = 1000

// listedAt rounds a time in milliseconds down to a second: appends within it move no entry of the indexes of lists. Runs within a second are
// sorted when a page is read.
func listedAt(updated int64) int64 { return updated - (updated%second+second)%second }

// pending returns the append as one that waits for its turn.
func (a *appending) pending() *pending {
	return &pending{id: a.batch.ExecutionID, text: a.text, args: a.args, row: func(row pgx.Rows) error { return row.Scan(a.into()...) }, size: a.size}
}

// into returns where the row of the statement is read to.
func (a *appending) into() []any {
	into := []any{&a.bytes}
	for i := range a.tells {
		into = append(into, &a.told[i])
	}
	return into
}

const readHead = `SELECT seq, phase FROM @runs WHERE execution_id = $1::text`

// refusal returns the reason why the run's row was not changed.
func (a *appending) refusal(ctx context.Context, q queries) error {
	b := a.batch
	var seq int64
	var phase string
	found, err := first(context.WithoutCancel(ctx), q, a.store.texts.of(readHead), []any{key(b.ExecutionID)}, &seq, &phase)
	switch {
	case err != nil:
		return err
	case found && phase == deleted && (b.ExpectedSeq == 0 || b.ExpectedSeq == seq):
		return history.BeingDeleted(b.ExecutionID)
	case !found, seq != b.ExpectedSeq, b.Owner == "":
		return b.Conflict()
	}
	return b.LeaseHeld()
}

// stepwise makes an append that needs to read first: of a fork or retry, of its end, or with signatures.
func (a *appending) stepwise(ctx context.Context, tx pgx.Tx) error {
	s, b := a.store, a.batch
	linked := b.Link != nil || b.EndsFork()
	if linked {
		if _, err := tx.Exec(ctx, s.texts.of(lockLinks)); err != nil {
			return err
		}
	}
	found, err := first(ctx, tx, a.text, a.args, a.into()...)
	if err == nil && !found {
		err = a.refusal(ctx, tx)
	}
	if err == nil && linked {
		err = s.storeLink(ctx, tx, b)
	}
	for d := range b.Definitions() {
		if err == nil && len(d.Signatures) > 0 {
			err = s.addSignatures(ctx, tx, d)
		}
	}
	if err == nil && linked {
		err = s.handleRetried(ctx, tx, b)
	}
	return err
}

// at is the time that statements use; nil means the server's.
func (s *Store) at() any {
	if s.options.Now == nil {
		return nil
	}
	return s.options.Now().UnixMilli()
}

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
