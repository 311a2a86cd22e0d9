package conformance_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestPowerCutDisk: what was flushed is in every image, and what was not stands as it stood at some moment since.
func TestPowerCutDisk(t *testing.T) {
	t.Parallel()
	page := func(b byte) []byte { return bytes.Repeat([]byte{b}, 1024) }
	ops := []diskOp{
		{kind: opMkdir, path: "/d/f"},
		{kind: opFlush, path: "/d", begun: 1},
		{kind: opCreate, path: "/d/f/a"},
		{kind: opCreate, path: "/d/f/b"},
		{kind: opWrite, path: "/d/f/a", data: page('1')},
		{kind: opWrite, path: "/d/f/a", data: page('2')},
		{kind: opFlush, path: "/d/f/a", begun: 5}, // the second write was under way
		{kind: opFlush, path: "/d/f", begun: 3},   // and so was the second file
		{kind: opWrite, path: "/d/f/a", data: page('3'), at: 512},
	}
	d := newDisk("/d")
	for i, op := range ops {
		d.apply(i, op)
	}
	contents, files, torn := map[string]bool{}, map[int]bool{}, false
	for seed := range uint64(400) {
		image := d.image(fate(seed%uint64(fates)), rand.New(rand.NewPCG(1, seed)))
		files[len(image)] = true
		a := image["/d/f/a"]
		if len(a) < 1024 || len(a) > 1536 {
			t.Fatalf("%d bytes", len(a))
		}
		versions := ""
		for s := 0; s < len(a); s += sector {
			versions += string(a[s])
			torn = torn || a[s] != a[s+sector-1]
		}
		contents[versions] = true
	}
	for _, want := range []string{"11", "22", "12", "21", "13", "23", "22\x00", "22" + "3", "233", "133"} {
		if !contents[want] {
			t.Errorf("no image has %q: %v", want, contents)
		}
	}
	for versions := range contents {
		if strings.Trim(versions[:1], "12") != "" || strings.Trim(versions[1:2], "123") != "" {
			t.Errorf("an image has %q", versions)
		}
	}
	if !files[1] || !files[2] || len(files) != 2 || !torn {
		t.Errorf("files %v, torn %v", files, torn)
	}
}

// TestPowerCutTrace reads what strace writes.
func TestPowerCutTrace(t *testing.T) {
	t.Parallel()
	said := mark{what: "ack", name: `a "run"`, seq: 3, at: time.UnixMilli(5), index: []byte{1, 2}}
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(said.line())
	text := `1  open("/r/d/x", O_RDWR|O_CREAT, 0600) = 3</r/d/x>
1  openat(AT_FDCWD</w>, "/r/d/y", O_RDWR|O_CREAT, 0600) = -1 EACCES (Permission denied)
1  pwrite64(3</r/d/x>, "\0\00012\n\"\377", 7, 512 <unfinished ...>
22 fsync(3</r/d/x> <unfinished ...>
1  <... pwrite64 resumed>)              = 7
22 <... fsync resumed>)                 = 0
22 fsync(4</r/d>)           = 0
22 write(5</r/marks>, "` + escaped + `", 9) = 9
1  pwrite64(6</elsewhere>, "1", 1, 0)   = 1
1  renameat(AT_FDCWD</w>, "/r/d/x", AT_FDCWD</w>, "/r/d/z") = 0
1  unlink("/r/d/z")                     = 0
1  +++ exited with 0 +++
`
	want := []diskOp{
		{kind: opCreate, path: "/r/d/x"},
		{kind: opWrite, path: "/r/d/x", data: []byte("\x00\x0012\n\"\xff"), at: 512, begun: 1},
		{kind: opFlush, path: "/r/d/x", begun: 1},
		{kind: opFlush, path: "/r/d", begun: 3},
		{kind: opMark, path: "/r/marks", mark: said, begun: 4},
		{kind: opRename, path: "/r/d/x", to: "/r/d/z", begun: 5},
		{kind: opRemove, path: "/r/d/z", begun: 6},
	}
	ops, err := parseTrace(strings.NewReader(text), "/r", "/r/marks")
	if err != nil || !reflect.DeepEqual(ops, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, ops, want)
	}
	for _, line := range []string{
		`1 pwrite64(3</r/d/x>, "12"..., 3, 0) = 3`, `1 pwrite64(3</r/d/x>, "123", 3, 0) = 2`, `1 pwrite64(3</r/d/y>, "123", 3, 0) = 3`,
		`1 rename("/r/d/x", "/elsewhere") = 0`, `1 link("/r/d/x", "/r/d/y") = 0`, `1 fallocate(3</r/d/x>, 0, 0, 9) = 0`, `1 write(3</r/d/x>, "123", 3) = 3`, `1 what`,
	} {
		created, _, _ := strings.Cut(text, "\n")
		if ops, err := parseTrace(strings.NewReader(created+"\n"+line+"\n"), "/r", "/r/marks"); err == nil {
			t.Errorf("%s: %+v", line, ops)
		}
	}
}
