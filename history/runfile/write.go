package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	format  = "workflows-engine/runs"
	version = 1
)

// The types of lines.
const (
	typeHeader     = "header"
	typeDefinition = "definition"
	typeRun        = "run"
	typeRecord     = "record"
	typeTrailer    = "trailer"
)

// Run is one run of a file.
type Run struct {
	ExecutionID string
	// Records have their payload texts in Raw.
	Records []history.Record
	// Handled is set for a failed or cancelled run that needs no more attention.
	Handled *history.Handling
}

// Writer writes a file. Call Header, then Definition for each definition, then Run for each run, then Trailer. After an error the file
// is invalid.
type Writer struct {
	// Redaction selects the values masked in a redacted file; nil means history.DefaultRedaction.
	Redaction *history.Redaction

	out      io.Writer
	sum      hash.Hash
	buf      []byte
	redacted bool
	counts   struct{ definitions, runs, records int }
}

// NewWriter returns a Writer to out, with one Write a line. With redact it masks values that look like secrets.
func NewWriter(out io.Writer, redact bool) *Writer {
	return &Writer{out: out, sum: sha256.New(), redacted: redact}
}

// Header writes the first line. executionID is the exported run.
func (w *Writer) Header(executionID string, now time.Time) error {
	w.begin(typeHeader)
	w.text("format", format)
	w.number("version", version)
	w.text("execution_id", executionID)
	w.text("exported_at", history.FormatTimestamp(now))
	if w.redacted {
		w.raw("redacted", []byte("true"))
	}
	return w.end()
}

// Definition writes a definition.
func (w *Writer) Definition(d history.StoredDefinition) error {
	w.counts.definitions++
	w.begin(typeDefinition)
	w.text("hash", d.Hash)
	w.text("name", d.Name)
	w.text("version", d.Version)
	w.raw("text", w.shown(d.Text))
	if len(d.Signatures) > 0 && !w.redacted { // a signature contains the signed content
		w.raw("signatures", slices.Concat([]byte("["), bytes.Join(d.Signatures, []byte(",")), []byte("]")))
	}
	return w.end()
}

// Run writes a run with all its records.
func (w *Writer) Run(run Run) error {
	w.counts.runs++
	w.begin(typeRun)
	w.text("execution_id", run.ExecutionID)
	w.number("records", len(run.Records))
	if h := run.Handled; h != nil {
		mark := jsonvalue.Ordered{}
		mark.Text("note", h.Note)
		mark.Text("retry", h.Retry)
		mark.Text("actor", h.Actor)
		mark.Text("at", history.FormatTimestamp(h.At))
		w.raw("handled", w.shown(mark.Append(nil)))
	}
	if err := w.end(); err != nil {
		return err
	}
	for i := range run.Records {
		r := &run.Records[i]
		w.counts.records++
		w.begin(typeRecord)
		w.number("seq", int(r.Seq))
		w.text("kind", string(r.Kind))
		w.text("name", string(r.Name))
		w.text("created_at", history.FormatTimestamp(r.CreatedAt))
		if r.Foreign {
			w.raw("foreign", []byte("true"))
		}
		w.raw("payload", w.shown(OneLine(r.Text(run.ExecutionID))))
		if err := w.end(); err != nil {
			return err
		}
	}
	return nil
}

// OneLine returns JSON text on one line. Other engines may store payloads on several lines.
func OneLine(text []byte) []byte {
	if !bytes.ContainsAny(text, "\n\r") {
		return text
	}
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// Trailer writes the last line.
func (w *Writer) Trailer() error {
	sum := hex.EncodeToString(w.sum.Sum(nil))
	w.begin(typeTrailer)
	w.number("definitions", w.counts.definitions)
	w.number("runs", w.counts.runs)
	w.number("records", w.counts.records)
	w.text("sha256", sum)
	return w.end()
}

// shown returns a text, masked if the file is redacted.
func (w *Writer) shown(text []byte) []byte {
	if w.redacted {
		return w.Redaction.Or().Text(text)
	}
	return text
}

func (w *Writer) begin(kind string) {
	w.buf = append(w.buf[:0], `{"type":`...)
	w.buf = jsonvalue.AppendString(w.buf, kind)
}

func (w *Writer) member(name string) {
	w.buf = append(append(append(w.buf, `,"`...), name...), `":`...)
}

func (w *Writer) text(name, v string) {
	w.member(name)
	w.buf = jsonvalue.AppendString(w.buf, v)
}

func (w *Writer) number(name string, v int) {
	w.member(name)
	w.buf = strconv.AppendInt(w.buf, int64(v), 10)
}

func (w *Writer) raw(name string, v []byte) {
	w.member(name)
	w.buf = append(w.buf, v...)
}

func (w *Writer) end() error {
	w.buf = append(w.buf, "}\n"...)
	w.sum.Write(w.buf)
	_, err := w.out.Write(w.buf)
	return err
}
