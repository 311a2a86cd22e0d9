package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mark is what a process says beside its files: what was acknowledged to it, what it is about to do, and the state of the WAL's index.
type mark struct {
	what  string // "case", "opened", "begun", "ack", "definition", "perform", "ended" or "closed"
	name  string // of the run, the definition or the attempt
	seq   int64
	at    time.Time
	index []byte
}

func (m mark) line() string {
	return fmt.Sprintf("%s %s %d %d %x.\n", m.what, strconv.Quote(m.name), m.seq, m.at.UnixMilli(), m.index)
}

func parseMark(line string) (m mark, err error) {
	var at int64
	var index string
	if _, err = fmt.Sscanf(line, "%s %q %d %d %s", &m.what, &m.name, &m.seq, &at, &index); err != nil {
		return m, fmt.Errorf("mark %q: %w", line, err)
	}
	m.at = time.UnixMilli(at)
	m.index, err = hex.DecodeString(strings.TrimSuffix(index, "."))
	return m, err
}

// tracedCalls are the system calls that change a disk. Those that neither SQLite nor the engine makes are refused by parseTrace.
const tracedCalls = "open,openat,openat2,creat,write,pwrite64,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,msync,unlink,unlinkat,rename,renameat,renameat2,link,linkat,mkdir,mkdirat"

// traced runs a command under strace and returns what it did to the files below a folder.
func traced(t *testing.T, root, marks string, cmd *exec.Cmd) []diskOp {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	strace := exec.CommandContext(t.Context(), "strace", append([]string{
		"-f", "--seccomp-bpf", "-qq", "-y", "-s", "1000000", "-e", "signal=none", "-e", "trace=" + tracedCalls, "-o", out, "--"}, cmd.Args...)...)
	strace.Env = cmd.Env
	if text, err := strace.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ops, err := parseTrace(f, root, marks)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// parseTrace reads the output of strace.
func parseTrace(r io.Reader, root, marks string) (ops []diskOp, err error) {
	type unfinished struct {
		text  []byte
		begun int
	}
	p := traceParser{root: root, marks: marks, names: map[string]bool{}}
	open := map[string]unfinished{}
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return p.ops, nil
		}
		if err != nil {
			return nil, err
		}
		pid, call, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
		call = bytes.TrimLeft(call, " ")
		begun := len(p.ops)
		if text, ok := bytes.CutSuffix(call, []byte(" <unfinished ...>")); ok {
			open[string(pid)] = unfinished{bytes.Clone(text), begun}
			continue
		}
		if bytes.HasPrefix(call, []byte("<... ")) {
			_, rest, _ := bytes.Cut(call, []byte(" resumed>"))
			u := open[string(pid)]
			call, begun = append(u.text, rest...), u.begun
		}
		if err := p.add(string(call), begun); err != nil {
			return nil, fmt.Errorf("%.200s: %w", call, err)
		}
	}
}

// traceParser turns calls into operations on the files below root.
type traceParser struct {
	root, marks string
	names       map[string]bool // the files that are there
	ops         []diskOp
}

func (p *traceParser) add(call string, begun int) error {
	if strings.HasPrefix(call, "+++ ") || strings.HasPrefix(call, "???( <detached") {
		return nil // the end of a process, or of a thread whose call was not read any more
	}
	name, args, ok := strings.Cut(call, "(")
	equals := strings.LastIndex(args, " = ")
	if !ok || equals < 0 {
		return fmt.Errorf("not a line of strace")
	}
	result := args[equals+3:]
	args, ok = strings.CutSuffix(strings.TrimRight(args[:equals], " "), ")")
	if !ok {
		return fmt.Errorf("not a line of strace")
	}
	if strings.HasPrefix(result, "-1 ") || strings.HasPrefix(result, "?") {
		return nil // a call that failed, or did not return
	}
	op := diskOp{begun: begun}
	switch name {
	case "fsync", "fdatasync":
		op.kind, op.path = opFlush, described(args)
	case "write", "pwrite64":
		if op.path = described(args); op.path != p.marks && !p.below(op.path) {
			return nil
		}
		quote := strings.IndexByte(args, '"')
		data, tail, err := unquote(args[quote+1:])
		if err != nil {
			return err
		}
		if op.path == p.marks {
			op.kind = opMark
			op.mark, err = parseMark(string(data))
			p.ops = append(p.ops, op)
			return err
		}
		fields := strings.Split(tail, ", ") // "", size, offset
		if len(fields) != 3 || name == "write" {
			return fmt.Errorf("not expected of a database")
		}
		op.kind, op.data = opWrite, data
		if op.at, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
			return err
		}
		written, err := strconv.Atoi(result)
		if err != nil || written != len(data) {
			return fmt.Errorf("%s bytes of %d were written", result, len(data))
		}
	case "ftruncate":
		op.kind, op.path = opCut, described(args)
		var err error
		if op.at, err = strconv.ParseInt(args[strings.LastIndex(args, ", ")+2:], 10, 64); err != nil {
			return err
		}
	case "open", "openat":
		op.path = quoted(args)
		if !p.below(op.path) || !strings.Contains(args, "O_CREAT") || p.names[op.path] {
			return nil
		}
		op.kind = opCreate
		p.names[op.path] = true
	case "mkdir", "mkdirat":
		op.kind, op.path = opMkdir, quoted(args)
	case "unlink", "unlinkat":
		op.kind, op.path = opRemove, quoted(args)
		delete(p.names, op.path)
	case "rename", "renameat":
		op.kind, op.path = opRename, quoted(args)
		op.to = quoted(args[strings.Index(args, op.path)+len(op.path)+1:])
		if p.below(op.path) != p.below(op.to) {
			return fmt.Errorf("the disk does not know this call")
		}
		delete(p.names, op.path)
		p.names[op.to] = true
	default:
		if strings.Contains(args, p.root) {
			return fmt.Errorf("the disk does not know this call")
		}
		return nil
	}
	if !p.below(op.path) && op.path != p.root {
		return nil
	}
	if (op.kind == opWrite || op.kind == opCut) && !p.names[op.path] {
		return fmt.Errorf("nothing created the file")
	}
	p.ops = append(p.ops, op)
	return nil
}

func (p *traceParser) below(path string) bool { return strings.HasPrefix(path, p.root+"/") }

// described returns the path that -y adds to the first argument, a descriptor. A file without a name has no path that counts.
func described(args string) string {
	_, path, _ := strings.Cut(args, "<")
	path, rest, _ := strings.Cut(path, ">")
	if strings.HasPrefix(rest, "(deleted)") {
		return ""
	}
	return path
}

// quoted returns the first quoted argument.
func quoted(args string) string {
	_, rest, _ := strings.Cut(args, `"`)
	path, _, _ := strings.Cut(rest, `"`)
	return path
}

// unquote decodes a string of strace up to its closing quote, and returns what follows.
func unquote(s string) (data []byte, rest string, err error) {
	data = make([]byte, 0, 4200)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if strings.HasPrefix(s[i:], `"...`) {
				return nil, "", fmt.Errorf("the string is cut")
			}
			return data, s[i+1:], nil
		case '\\':
			i++
			if i == len(s) {
				break
			}
			if n := strings.IndexByte(`abtnvfr`, s[i]); n >= 0 {
				data = append(data, byte('\a'+n))
				continue
			}
			v, n := 0, 0
			for ; n < 3 && i < len(s) && '0' <= s[i] && s[i] <= '7'; n++ {
				v = v*8 + int(s[i]-'0')
				i++
			}
			if n == 0 {
				data = append(data, s[i])
				continue
			}
			i--
			data = append(data, byte(v))
		default:
			data = append(data, c)
		}
	}
	return nil, "", fmt.Errorf("the string has no end")
}
