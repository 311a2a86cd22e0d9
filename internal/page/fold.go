package page

import (
	"context"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

const (
	// foldPage is the number of records read at once to fold a run.
	foldPage = 500
	// keptFolds is the number of folded histories that are kept, so that a live page reads only the new records of its run.
	keptFolds = 8
)

// folded is a run's history, folded.
type folded struct {
	mu      sync.Mutex
	program *definition.Program
	run     *timeline.Run
	line    *timeline.Timeline
	// by is who began the run, nil if it is not recorded.
	by *history.Actor
	// last is the newest record, without its payload.
	last history.Record
	// state is the seq of the newest record of a state, 0 before the first one.
	state int64
	// seqs has the records of each visit.
	seqs map[*timeline.Visit]visitSeqs
}

// visitSeqs are the seqs of records of a visit; 0 for one that is not recorded. The attempts of the visit have those of their requests and
// outcomes.
type visitSeqs struct {
	// before is the state when the visit began, after the one that it left.
	before, after, output int64
}

// folds keeps the histories folded last, the newest one at the end.
type folds struct {
	mu   sync.Mutex
	list []*folded
}

// of returns the folded history of a run, a new one if it is not kept. The caller locks it.
func (k *folds) of(id string) *folded {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, func(f *folded) bool { return f.line.Root().ID == id })
	if i < 0 {
		k.list = append(k.list, newFold(id))
		k.list = k.list[max(len(k.list)-keptFolds, 0):]
		return k.list[len(k.list)-1]
	}
	f := k.list[i]
	k.list = append(slices.Delete(k.list, i, i+1), f)
	return f
}

func newFold(id string) *folded {
	line := timeline.New(id, jsonvalue.Plain)
	return &folded{line: line, run: line.Root(), seqs: map[*timeline.Visit]visitSeqs{}}
}

// take adds a record.
func (f *folded) take(r *history.Record) {
	switch r.Name {
	case history.ExecutionStarted:
		f.by = r.Payload.Actor
	case history.StateUpdated:
		f.state = r.Seq
	}
	f.last = history.Record{Seq: r.Seq, Kind: r.Kind, Name: r.Name, CreatedAt: r.CreatedAt}
	visit := f.line.Record(f.run.ID, r).Visit
	if visit == nil {
		return
	}
	seqs, known := f.seqs[visit]
	if !known {
		seqs.before = f.state
	}
	switch r.Name {
	case history.CompleteNode:
		seqs.output = r.Seq
	case history.StateUpdated:
		seqs.after = r.Seq
	}
	f.seqs[visit] = seqs
}

// fold returns the history of a run, folded; it reads the records that are new. hash is that of the definition. The caller calls done when
// it no longer uses the result, which is not nil with an error either.
func (s *Server) fold(ctx context.Context, id, hash string) (f *folded, done func(), err error) {
	f = s.folds.of(id)
	f.mu.Lock()
	done = f.mu.Unlock
	if f.last.Seq > 0 { // the id may be that of another run now
		records, err := s.o.Engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: f.last.Seq, Limit: 1})
		if err != nil || len(records) == 0 || records[0].Name != f.last.Name || !records[0].CreatedAt.Equal(f.last.CreatedAt) {
			fresh := newFold(id)
			f.program, f.run, f.line, f.by, f.last, f.state, f.seqs = nil, fresh.run, fresh.line, nil, history.Record{}, 0, fresh.seqs
		}
	}
	if f.program == nil {
		if f.program = s.program(ctx, hash); f.last.Seq == 0 {
			f.line.Define(id, f.program)
		}
	}
	err = s.eachRecord(ctx, id, f.last.Seq+1, func(r *history.Record) bool {
		f.take(r)
		return true
	})
	return f, done, err
}

// record returns a record of a run, nil for seq 0 and for one that cannot be read.
func (s *Server) record(ctx context.Context, id string, seq int64) *history.Record {
	if seq == 0 {
		return nil
	}
	records, err := s.o.Engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: seq, Limit: 1})
	if err != nil || len(records) == 0 || records[0].Seq != seq {
		return nil
	}
	return &records[0]
}

// eachRecord calls a function with the records of a run from a seq on, until it returns false.
func (s *Server) eachRecord(ctx context.Context, id string, from int64, each func(*history.Record) bool) error {
	for {
		records, err := s.o.Engine.History(ctx, graph.HistoryRequest{ExecutionID: id, FromSeq: from, Limit: foldPage})
		if err != nil {
			return err
		}
		for i := range records {
			if !each(&records[i]) {
				return nil
			}
		}
		if len(records) < foldPage {
			return nil
		}
		from = records[len(records)-1].Seq + 1
	}
}
