package runfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxLineBytes limits one line, and MaxBytes a file. The first line is short, so that other files are refused early.
const (
	MaxLineBytes   = 64 << 20
	MaxBytes       = 4 << 30
	maxHeaderBytes = 64 << 10
)

// maxLevels limits the nesting of a payload: a workflow value and the fields around it, with room.
const maxLevels = 2 * jsonvalue.MaxDepth

// File is the content of a file.
type File struct {
	// ExecutionID is the exported run, the first of Runs.
	ExecutionID string
	// Redacted reports whether values were masked; such runs cannot be imported.
	Redacted    bool
	Definitions []history.StoredDefinition
	Runs        []Run
}

// line is a line of any type. Fields that a type does not have must be absent.
type line struct {
	Type        string            `json:"type"`
	Format      *string           `json:"format"`
	Version     json.RawMessage   `json:"version"` // a number in the header, a text in definitions
	ExecutionID *string           `json:"execution_id"`
	ExportedAt  *string           `json:"exported_at"`
	Redacted    *bool             `json:"redacted"`
	Hash        *string           `json:"hash"`
	Name        *string           `json:"name"`
	Text        json.RawMessage   `json:"text"`
	Signatures  []json.RawMessage `json:"signatures"`
	Records     *int              `json:"records"`
	Handled     *mark             `json:"handled"`
	Seq         *int64            `json:"seq"`
	Kind        *string           `json:"kind"`
	CreatedAt   *string           `json:"created_at"`
	Foreign     *bool             `json:"foreign"`
	Payload     json.RawMessage   `json:"payload"`
	Definitions *int              `json:"definitions"`
	Runs        *int              `json:"runs"`
	SHA256      *string           `json:"sha256"`
}

// mark is the "handled" field of a run.
type mark struct {
	Note, Retry, Actor, At string
}

// members lists the required fields of each type of line.
var members = map[string][]string{
	typeHeader:     {"format", "version", "execution_id", "exported_at"},
	typeDefinition: {"hash", "name", "version", "text"},
	typeRun:        {"execution_id", "records"},
	typeRecord:     {"seq", "kind", "name", "created_at", "payload"},
	typeTrailer:    {"definitions", "runs", "records", "sha256"},
}

// optional lists the optional fields, with the type of line that may have them.
var optional = map[string]string{"redacted": typeHeader, "signatures": typeDefinition, "foreign": typeRecord, "handled": typeRun}

// given returns the set of fields of a line.
func (l *line) given() map[string]bool {
	return map[string]bool{
		"format": l.Format != nil, "version": l.Version != nil, "execution_id": l.ExecutionID != nil, "exported_at": l.ExportedAt != nil,
		"redacted": l.Redacted != nil, "signatures": l.Signatures != nil, "foreign": l.Foreign != nil, "hash": l.Hash != nil, "name": l.Name != nil, "text": l.Text != nil, "records": l.Records != nil, "handled": l.Handled != nil,
		"seq": l.Seq != nil, "kind": l.Kind != nil, "created_at": l.CreatedAt != nil, "payload": l.Payload != nil,
		"definitions": l.Definitions != nil, "runs": l.Runs != nil, "sha256": l.SHA256 != nil,
	}
}

// reader is the state of Read.
type reader struct {
	file  File
	n     int
	audit *history.Audit
	// left is the number of records missing in the current run.
	left    int
	records int
	ended   bool
	// bytes counts the bytes read; most is their limit.
	bytes, most int64
}

// fail returns an error about the current line.
func (r *reader) fail(format string, args ...any) *problem.Error {
	args = append([]any{r.n}, args...)
	return problem.New(problem.ImportInvalid, "line %d: "+format, args...).
		WithPlace(problem.Place{Line: r.n, Column: 1}).
		WithHint("Export the run again, and move the file as it is.")
}

// Read reads and checks a whole file. It fails with IMPORT_INVALID and the line, or with the error of in.
func Read(in io.Reader) (*File, error) {
	return read(in, MaxBytes)
}

// read reads a file of at most that many bytes.
func read(in io.Reader, most int64) (*File, error) {
	r := &reader{most: most}
	lines := bufio.NewReaderSize(in, 1<<16)
	sum := sha256.New()
	for !r.ended {
		r.n++
		most := MaxLineBytes
		if r.n == 1 {
			most = maxHeaderBytes
		}
		text, err := readLine(lines, most)
		r.bytes += int64(len(text))
		switch {
		case errors.Is(err, io.EOF):
			return nil, r.fail("the file ends before its trailer: it was truncated").
				WithHint("Export the run again.")
		case errors.Is(err, errLong):
			return nil, r.fail("the line is longer than %d bytes", most)
		case err != nil:
			return nil, err
		case r.bytes > r.most:
			return nil, r.fail("the file is longer than %d bytes", r.most)
		}
		before := hex.EncodeToString(sum.Sum(nil))
		sum.Write(text)
		if err := r.line(text, before); err != nil {
			return nil, err
		}
	}
	r.n++
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, r.fail("unexpected text after the trailer")
	}
	return &r.file, nil
}

var errLong = errors.New("the line is too long")

// readLine reads a line of at most that many bytes, including its newline. A last line without a newline is io.EOF.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > most:
			return nil, errLong
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return text, err
		}
	}
}

// line reads one line. sum is the hash of the lines before it.
func (r *reader) line(text []byte, sum string) error {
	if !utf8.Valid(text) {
		return r.fail("the line is not UTF-8")
	}
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return r.fail("invalid line").WithCause(err)
	}
	if d.More() {
		return r.fail("unexpected text after the object")
	}
	known, ok := members[l.Type]
	if !ok {
		return r.fail("unknown line type %q", l.Type)
	}
	given := l.given()
	for _, name := range known {
		if !given[name] {
			return r.fail("the %s has no %q", l.Type, name)
		}
		delete(given, name)
	}
	for name, is := range given {
		if is && optional[name] != l.Type {
			return r.fail("a %s has no %q", l.Type, name)
		}
	}
	switch {
	case (r.n == 1) != (l.Type == typeHeader):
		return r.fail("expected the header as the first line, and only there")
	case r.left > 0 && l.Type != typeRecord:
		return r.fail("%d records of run %q are missing here", r.left, r.audit.ExecutionID)
	case r.left == 0 && l.Type == typeRecord:
		return r.fail("record without a run, or more records than the run says")
	case len(r.file.Runs) > 0 && l.Type == typeDefinition:
		return r.fail("expected definitions before runs")
	}
	switch l.Type {
	case typeHeader:
		return r.header(&l)
	case typeDefinition:
		return r.definition(&l)
	case typeRun:
		return r.run(&l)
	case typeRecord:
		return r.record(&l)
	}
	return r.trailer(&l, sum)
}

func (r *reader) header(l *line) error {
	switch {
	case *l.Format != format:
		return r.fail("expected the format %q, found %q", format, *l.Format)
	case string(l.Version) != "1":
		return r.fail("the file has version %s; this engine reads version %d", l.Version, version).
			WithHint("A newer version of this engine wrote it. Update this engine.")
	case *l.ExecutionID == "":
		return r.fail("the execution id is empty")
	}
	r.file.ExecutionID = *l.ExecutionID
	r.file.Redacted = l.Redacted != nil && *l.Redacted
	return nil
}

func (r *reader) definition(l *line) error {
	d := history.StoredDefinition{Hash: *l.Hash, Name: *l.Name, Text: bytes.Clone(l.Text)}
	for _, block := range l.Signatures {
		if jsonvalue.StringText(jsonvalue.MemberText(block, "value")) == nil {
			return r.fail("expected signature blocks, objects with a text as their value")
		}
		d.Signatures = append(d.Signatures, bytes.Clone(block))
	}
	if json.Unmarshal(l.Version, &d.Version) != nil {
		return r.fail("expected a string as the version of a definition")
	}
	sum := sha256.Sum256(d.Text)
	if !r.file.Redacted && hex.EncodeToString(sum[:]) != d.Hash {
		return r.fail("the definition %q does not match its hash %s", d.Name, d.Hash)
	}
	r.file.Definitions = append(r.file.Definitions, d)
	return nil
}

func (r *reader) run(l *line) error {
	id := *l.ExecutionID
	switch {
	case len(r.file.Runs) == 0 && id != r.file.ExecutionID:
		return r.fail("expected run %q first, as in the header, found %q", r.file.ExecutionID, id)
	case len(r.file.Runs) > 0 && !history.Descends(id, r.file.ExecutionID):
		return r.fail("run %q is not a subworkflow of %q", id, r.file.ExecutionID)
	case *l.Records < 1:
		return r.fail("run %q has no records", id)
	}
	if slices.ContainsFunc(r.file.Runs, func(other Run) bool { return other.ExecutionID == id }) {
		return r.fail("duplicate run %q", id)
	}
	run := Run{ExecutionID: id}
	if m := l.Handled; m != nil {
		at, err := history.ParseTimestamp(m.At)
		run.Handled = &history.Handling{ExecutionID: id, Note: m.Note, Retry: m.Retry, Actor: m.Actor, At: at}
		if err != nil || history.FormatTimestamp(at) != m.At || run.Handled.Check() != nil {
			return r.fail("expected the mark of a handled run: a note or a retry, and when")
		}
	}
	r.file.Runs = append(r.file.Runs, run)
	r.audit, r.left = &history.Audit{ExecutionID: id, Incoming: true}, *l.Records
	return nil
}

func (r *reader) record(l *line) error {
	run := &r.file.Runs[len(r.file.Runs)-1]
	record := history.Record{Seq: *l.Seq, Kind: history.Kind(*l.Kind), Name: history.Name(*l.Name), Raw: bytes.Clone(l.Payload)}
	record.Foreign = l.Foreign != nil && *l.Foreign
	var err error
	if record.CreatedAt, err = history.ParseTimestamp(*l.CreatedAt); err != nil || history.FormatTimestamp(record.CreatedAt) != *l.CreatedAt {
		return r.fail("expected created_at in the form 2026-11-21T01:03:46.919Z, found %q", *l.CreatedAt)
	}
	if jsonvalue.TooDeep(record.Raw, maxLevels) {
		return r.fail("the payload is nested more than %d levels deep", maxLevels)
	}
	if record.Payload, err = history.DecodePayload(record.Name, record.Raw); err != nil {
		return r.fail("the payload cannot be read").WithCause(err)
	}
	if _, losses, _ := jsonvalue.DecodeExact(record.Raw); len(losses) > 0 && !record.Foreign { // records of other engines are kept unchanged
		return r.fail("a value of the payload would change").WithCause(losses[0])
	}
	var owner struct {
		ExecutionID *string `json:"executionId"`
	}
	if json.Unmarshal(record.Raw, &owner) != nil || owner.ExecutionID != nil && *owner.ExecutionID != run.ExecutionID {
		return r.fail("the payload is not of run %q", run.ExecutionID)
	}
	run.Records = append(run.Records, record)
	r.audit.Record(&run.Records[len(run.Records)-1], nil)
	if len(r.audit.Findings) > 0 {
		return r.fail("record %d of run %q: %s: %s", record.Seq, run.ExecutionID, r.audit.Findings[0].Code, r.audit.Findings[0].Message)
	}
	r.left--
	r.records++
	return nil
}

func (r *reader) trailer(l *line, sum string) error {
	switch {
	case len(r.file.Runs) == 0:
		return r.fail("the file has no run")
	case *l.Definitions != len(r.file.Definitions) || *l.Runs != len(r.file.Runs) || *l.Records != r.records:
		return r.fail("the file has %d definitions, %d runs and %d records, but its trailer says %d, %d and %d",
			len(r.file.Definitions), len(r.file.Runs), r.records, *l.Definitions, *l.Runs, *l.Records)
	case *l.SHA256 != sum:
		return r.fail("the file was changed: the SHA-256 of its lines is %s, but its trailer says %s", sum, *l.SHA256)
	}
	r.ended = true
	return nil
}
