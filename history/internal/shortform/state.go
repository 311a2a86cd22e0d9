package shortform

import (
	"encoding/json"
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
)

// A large state is written as a delta to the previous one, until the deltas since the last whole state are larger than
// that state; then it is written whole again. So a run's states take no more space than the first one and a multiple of
// the changes, and reading one costs no more than twice its size.

// deltaCost is the cost of a delta besides its text, in bytes: near the overhead of its row for a reader.
const deltaCost = 512

// priorState is the newest state written in short form.
type priorState struct {
	seq   int64
	state map[string]any
	// hash is the hash of the field "state" in the row.
	hash string
	// whole is the seq of the last record with a whole state, size the size of that state, and since the total cost of the later deltas.
	whole int64
	size  int
	since int
}

// storedState is the field "state" of a short StateUpdated. One of its two fields is set.
type storedState struct {
	Snapshot *storedSnapshot `json:"$snapshot"`
	Delta    *storedDelta    `json:"$delta"`
}

type storedSnapshot struct {
	Size  int             `json:"size"`
	State json.RawMessage `json:"state"`
}

type storedDelta struct {
	Base    int64           `json:"base"`
	Hash    string          `json:"hash"`
	Whole   int64           `json:"whole"`
	Size    int             `json:"size"`
	Since   int             `json:"since"`
	Changes json.RawMessage `json:"changes"`
}

// parseState reads the field "state" of a stored payload; ok is false if it is not short.
func parseState(payload []byte) (text json.RawMessage, s storedState, ok bool) {
	var p struct {
		State json.RawMessage `json:"state"`
	}
	if json.Unmarshal(payload, &p) != nil || json.Unmarshal(p.State, &s) != nil {
		return nil, storedState{}, false
	}
	return p.State, s, (s.Snapshot != nil) != (s.Delta != nil)
}

// appendState appends the state of a StateUpdated.
func (e *Encoder) appendState(dst []byte, seq int64, state map[string]any) []byte {
	w, start := &e.values, len(dst)
	next := priorState{seq: seq, state: state}
	if p := &e.prior; p.seq > 0 {
		next.whole, next.size, next.since = p.whole, p.size, p.since
		dst = e.appendDelta(dst, &next, jsondelta.Diff(p.state, state))
	}
	if len(dst) == start || next.since > next.size {
		w.blobSize = 0
		dst = append(dst[:start], `{"`+markSnapshot+`":{"size":`...)
		text := w.value(nil, state)
		next.whole, next.size, next.since = seq, len(text)+w.blobSize, 0
		dst = strconv.AppendInt(dst, int64(next.size), 10)
		dst = append(append(append(dst, `,"state":`...), text...), "}}"...)
	}
	w.short = true
	next.hash = HashOf(dst[start:])
	e.prior = next
	return dst
}

// appendDelta appends a state as changes, and adds their cost to next.since.
func (e *Encoder) appendDelta(dst []byte, next *priorState, changes map[string]any) []byte {
	w := &e.values
	w.blobSize = 0
	text := w.value(nil, changes)
	next.since += deltaCost + len(text) + w.blobSize
	dst = append(dst, `{"`+markDelta+`":{"base":`...)
	dst = strconv.AppendInt(dst, e.prior.seq, 10)
	dst = append(append(append(dst, `,"hash":"`...), e.prior.hash...), `","whole":`...)
	dst = strconv.AppendInt(dst, next.whole, 10)
	dst = strconv.AppendInt(append(dst, `,"size":`...), int64(next.size), 10)
	dst = strconv.AppendInt(append(dst, `,"since":`...), int64(next.since), 10)
	return append(append(append(dst, `,"changes":`...), text...), "}}"...)
}

// appendReference appends a reference to the state of another record.
func appendReference(dst []byte, seq int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"`+markState+`":`...), seq, 10), '}')
}

// askPrior reads the row that the batch names as the newest state. The row never changes, and the append itself checks that no record was
// appended after it.
func (e *Encoder) askPrior() {
	if e.asked {
		return
	}
	e.asked = true
	p := &e.Batch.Prior
	if e.Prior == nil || p.Seq <= 0 || p.Seq > e.Batch.ExpectedSeq || len(p.State) == 0 {
		return
	}
	text, stored, ok := parseState(e.Prior.ShortState(p.Seq))
	if !ok {
		return // the state is then written whole
	}
	e.prior = priorState{seq: p.Seq, state: p.State, hash: HashOf(text)}
	if d := stored.Delta; d != nil {
		e.prior.whole, e.prior.size, e.prior.since = d.Whole, d.Size, d.Since
	} else {
		e.prior.whole, e.prior.size = p.Seq, stored.Snapshot.Size
	}
}
