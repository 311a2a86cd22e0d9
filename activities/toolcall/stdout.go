package toolcall

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// errTooLarge ends a connection whose server sent a message beyond the limit.
var errTooLarge = errors.New("the server sent a message beyond the size limit")

// envelope is larger than the rest of a message around its result.
const envelope = 64 << 10

// messages reads a server's standard output and passes on the lines that are JSON-RPC messages. Other lines, which
// servers print by mistake, are logged and skipped: they would end the connection. It is a reader for one goroutine.
type messages struct {
	out    *os.File
	lines  *bufio.Reader
	limit  int
	log    *slog.Logger
	secret childprocess.Scrubber
	line   []byte // what is left of the current message
	err    error
	// allowance limits the lines that are logged because they are not messages.
	allowance childprocess.Allowance

	// large is set when reading has ended because of a message beyond the limit.
	large atomic.Bool

	mu    sync.Mutex
	stray string
}

// logged is the largest size of a server's output that is logged, for each of its two outputs.
var logged = childprocess.Allowance{Bytes: 64 << 10, Window: time.Minute}

func newMessages(out *os.File, limit int, log *slog.Logger, secret childprocess.Scrubber) *messages {
	return &messages{out: out, lines: bufio.NewReaderSize(out, 64<<10), limit: limit + envelope, log: log, secret: secret, allowance: logged}
}

// Read implements io.Reader.
func (m *messages) Read(b []byte) (int, error) {
	for len(m.line) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.next()
	}
	n := copy(b, m.line)
	m.line = m.line[n:]
	return n, nil
}

// Close closes the pipe, also while it is being read.
func (m *messages) Close() error { return m.out.Close() }

// next reads one line; it leaves m.line empty for one that is not a message.
func (m *messages) next() {
	var line []byte
	for {
		part, err := m.lines.ReadSlice('\n')
		if len(line)+len(part) > m.limit {
			m.large.Store(true)
			m.err = errTooLarge
			return
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		m.err = err
		break
	}
	if m.err != nil && !errors.Is(m.err, io.EOF) {
		return
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(line, byteOrderMark))
	if len(text) == 0 {
		return
	}
	if !isMessage(text) {
		m.skip(string(text))
		return
	}
	m.line = append(exact(text), '\n')
}

// isMessage reports whether a line is a JSON-RPC message or a batch of them.
func isMessage(line []byte) bool {
	if line[0] == '[' {
		return json.Valid(line)
	}
	return jsonvalue.StringText(jsonvalue.MemberText(line, "jsonrpc")) != nil && json.Valid(line)
}

func (m *messages) skip(line string) {
	line = m.secret.Scrub(strings.ToValidUTF8(line, "\ufffd")) // before it is cut, so that the cut leaves no part of a secret
	line = strings.ToValidUTF8(line[:min(len(line), childprocess.MaxLine)], "")
	m.allowance.Log(line, func(line string) {
		m.log.Warn("MCP server prints a line on standard output that is not a message", logLine, line)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stray = line[:min(len(line), 200)]
}

// strayLine is the last line that was not a message, or "".
func (m *messages) strayLine() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.ToValidUTF8(m.stray, "")
}
