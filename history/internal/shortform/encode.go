package shortform

import (
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Encoder writes the payloads of the records of a batch, in order, the large ones in short form. Set its exported fields and use it for one
// batch.
type Encoder struct {
	Batch *history.Batch
	// WholeBytes is the largest payload, in bytes, that is written whole. ValueBytes is the smallest size of a value in a short payload that
	// becomes a blob.
	WholeBytes, ValueBytes int
	// Prior is called at most once.
	Prior Prior

	values valueWriter
	// rows holds the seqs of the short records.
	rows []int64
	// prior is the newest state in short form, the base of the next one.
	prior priorState
	// asked reports that Prior was called, or need not be.
	asked bool
}

// Append appends the payload of record i of the batch, whole or short.
func (e *Encoder) Append(dst []byte, i int) []byte {
	r := &e.Batch.Records[i]
	start := len(dst)
	whole := r.Weigh(e.WholeBytes) < e.WholeBytes
	if whole {
		dst = e.appendWhole(dst, r)
		whole = len(dst)-start <= e.WholeBytes
	}
	if !whole {
		dst = e.appendShort(dst[:start], i)
	} else if r.Name == history.StateUpdated {
		e.prior, e.asked = priorState{}, true
	}
	return dst
}

// appendWhole appends a payload in which only this engine's own fields are short: large values in them become blobs.
func (e *Encoder) appendWhole(dst []byte, r *history.Record) []byte {
	if r.Payload.Request == nil && r.Payload.AgentStep == nil {
		return r.AppendPayload(dst, e.Batch.ExecutionID)
	}
	e.values.least = e.ValueBytes
	return r.AppendPayloadFunc(dst, e.Batch.ExecutionID, func(dst []byte, member string, v any) []byte {
		if history.IsOwnValue(member) {
			return e.values.value(dst, v)
		}
		return jsonvalue.Append(dst, v)
	})
}

// Rows returns the seqs of the short records written so far.
func (e *Encoder) Rows() []int64 { return e.rows }

// Blobs returns the blobs referenced by the payloads written so far. A blob may occur twice, or be stored already.
func (e *Encoder) Blobs() []Blob { return e.values.blobs }

// BlobBytes returns the size of the contents of Blobs.
func (e *Encoder) BlobBytes() int {
	n := 0
	for i := range e.values.blobs {
		n += len(e.values.blobs[i].Content)
	}
	return n
}

func (e *Encoder) appendShort(dst []byte, i int) []byte {
	e.askPrior()
	r, seq, w := &e.Batch.Records[i], e.Batch.ExpectedSeq+1+int64(i), &e.values
	w.least = e.ValueBytes
	short := false
	dst = r.AppendPayloadFunc(dst, e.Batch.ExecutionID, func(dst []byte, member string, v any) []byte {
		w.short, w.blobSize = false, 0
		state, _ := v.(map[string]any)
		switch {
		case member == "state" && r.Name == history.StateUpdated:
			dst = e.appendState(dst, seq, state)
		case e.prior.seq > 0 && len(state) > 0 && keyOf(state) == keyOf(e.prior.state):
			dst = appendReference(dst, e.prior.seq)
			w.short = true
		default:
			part := false
			// The projection reads the input of a delegate, and has no states.
			if e.prior.seq > 0 && len(state) > 0 && member != "delegateInput" {
				dst, part = e.appendPart(dst, state)
			}
			if !part {
				dst = w.value(dst, v)
			}
		}
		short = short || w.short
		return dst
	})
	if short {
		e.rows = append(e.rows, seq)
	}
	return dst
}
