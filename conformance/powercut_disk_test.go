package conformance_test

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// What a power cut leaves of the files that a process wrote, by POSIX and by what SQLite expects of a disk:
//
//   - What was flushed is there: the content and size of a file since its last fsync, the names in a folder since the last fsync of
//     the folder.
//   - Of what came later each sector of 512 bytes, each file's size and each name in a folder stands where it stood at some moment
//     since the last flush, independently of all others. So writes are lost, reordered, and torn between sectors.
//   - A sector may be torn too: the old bytes behind the new ones. Bytes beside a write do not change.
//   - Where a file grew, sectors that were not written hold zeros or garbage.
//
// The index of a WAL (-shm) is never flushed. The system writes it back when it likes: it is missing, or as it was at some moment.

// diskOp is a call that changed the disk.
type diskOp struct {
	kind opKind
	path string
	data []byte
	// to is the new name in a renaming.
	to string
	// at is where a write begins, or the size to which a file is cut.
	at int64
	// begun is the number of the calls that had ended when this one began: a flush counts for them alone.
	begun int
	mark  mark
}

type opKind int

const (
	opMark opKind = iota // the process said something
	opMkdir
	opCreate
	opRemove
	opRename
	opWrite
	opCut
	opFlush
)

const sector = 512

// file is a file or a folder by its identity: its name may be given to another one.
type file struct {
	folder  bool
	durable []byte
	pending []change // since the last flush
	// index are the states of the index of a WAL.
	index [][]byte
}

// change is a write to a file, or a cut, with the number of its call.
type change struct {
	number int
	data   []byte // nil for a cut
	at     int64
}

// naming gives a name to a file, or takes it away if the file is nil.
type naming struct {
	number int
	path   string
	file   *file
}

// disk is what a process sees of its files, and what of that is durable. The folder root is durable.
type disk struct {
	root    string
	names   map[string]*file
	durable map[string]*file
	pending []naming
}

func newDisk(root string) *disk {
	return &disk{root: root, names: map[string]*file{}, durable: map[string]*file{}}
}

// apply makes the change of a call.
func (d *disk) apply(number int, op diskOp) {
	switch op.kind {
	case opMkdir, opCreate:
		f := &file{folder: op.kind == opMkdir}
		d.names[op.path] = f
		d.pending = append(d.pending, naming{number, op.path, f})
	case opRemove:
		delete(d.names, op.path)
		d.pending = append(d.pending, naming{number, op.path, nil})
	case opRename: // each name stands at a moment of its own, which is worse than what file systems do
		f := d.names[op.path]
		delete(d.names, op.path)
		d.names[op.to] = f
		d.pending = append(d.pending, naming{number, op.path, nil}, naming{number, op.to, f})
	case opWrite, opCut:
		if f := d.names[op.path]; f != nil && !isIndex(op.path) {
			f.pending = append(f.pending, change{number, op.data, op.at})
		}
	case opMark:
		for path, f := range d.names {
			if isIndex(path) && op.mark.index != nil {
				f.index = append(f.index, op.mark.index)
			}
		}
	case opFlush:
		d.flush(op.path, op.begun)
	}
}

func isIndex(path string) bool { return strings.HasSuffix(path, "-shm") }

// flush makes durable what calls before the given one changed.
func (d *disk) flush(path string, before int) {
	if f := d.names[path]; f != nil && !f.folder {
		n := 0
		for n < len(f.pending) && f.pending[n].number < before {
			f.durable = f.pending[n].apply(f.durable)
			n++
		}
		f.pending = f.pending[n:]
		return
	}
	d.pending = slices.DeleteFunc(d.pending, func(n naming) bool {
		if filepath.Dir(n.path) != path || n.number >= before {
			return false
		}
		d.durable[n.path] = n.file
		return true
	})
}

func (c *change) apply(content []byte) []byte {
	if c.data == nil {
		return resized(content, c.at)
	}
	content = resized(content, max(int64(len(content)), c.at+int64(len(c.data))))
	copy(content[c.at:], c.data)
	return content
}

// resized returns the content cut or filled with zeros. Bytes behind a cut do not come back.
func resized(content []byte, size int64) []byte {
	if int64(len(content)) < size {
		return append(content, make([]byte, size-int64(len(content)))...)
	}
	return content[:size:size]
}

// fate says how much of what was not flushed is on the disk.
type fate int

const (
	nothing fate = iota
	everything
	// prefix keeps the changes up to some call, of which the last may be torn.
	prefix
	// sectors and pages choose a moment for each sector or page of 4,096 bytes.
	sectors
	pages
	// hollow keeps all sizes and names, and zeros where files grew.
	hollow
	fates
)

// image returns the files that a power cut leaves, by their paths.
func (d *disk) image(how fate, rng *rand.Rand) map[string][]byte {
	c := &cut{how: how, rng: rng}
	var numbers []int // of the changes that are not durable
	for _, n := range d.pending {
		numbers = append(numbers, n.number)
	}
	for _, path := range slices.Sorted(maps.Keys(d.names)) {
		for _, change := range d.names[path].pending {
			numbers = append(numbers, change.number)
		}
	}
	if len(numbers) > 0 {
		c.moment = numbers[rng.IntN(len(numbers))] + 1
	}
	names, changes := maps.Clone(d.durable), map[string][]naming{}
	for _, n := range d.pending {
		changes[n.path] = append(changes[n.path], n)
	}
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		list := changes[path]
		moment := c.choose(list[0].number, list[len(list)-1].number)
		for _, n := range list {
			if n.number < moment {
				names[path] = n.file
			}
		}
	}
	image := map[string][]byte{}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		switch f := names[path]; {
		case f == nil || f.folder || !d.reachable(names, path):
		case !isIndex(path):
			image[path] = c.content(f)
		case len(f.index) > 0 && rng.IntN(2) == 0:
			image[path] = f.index[rng.IntN(len(f.index))]
		}
	}
	return image
}

// reachable reports whether the folders above a path are there.
func (d *disk) reachable(names map[string]*file, path string) bool {
	for dir := filepath.Dir(path); dir != d.root; dir = filepath.Dir(dir) {
		if f := names[dir]; f == nil || !f.folder {
			return false
		}
	}
	return true
}

// cut is a power cut.
type cut struct {
	how fate
	rng *rand.Rand
	// moment is that of the fate prefix: calls before it have taken effect.
	moment int
}

// choose returns the number of the call before which something stands on the disk, if calls from first to last changed it.
func (c *cut) choose(first, last int) int {
	switch c.how {
	case nothing:
		return first
	case everything, hollow:
		return last + 1
	case prefix:
		return c.moment
	}
	return first + c.rng.IntN(last-first+2)
}

// content returns what is left of a file.
func (c *cut) content(f *file) []byte {
	if len(f.pending) == 0 {
		return f.durable
	}
	first, last := f.pending[0].number, f.pending[len(f.pending)-1].number
	size, longest, sizeAt := int64(len(f.durable)), int64(len(f.durable)), c.choose(first, last)
	for _, change := range f.pending {
		if change.number < sizeAt {
			size = change.size(size)
		}
		longest = max(longest, change.size(longest))
	}
	unit := int64(sector)
	if c.how == pages {
		unit = 4096
	}
	// The moment of each sector, and the newest change to it until then.
	moments, newest := make([]int, longest/unit+1), make([]int, longest/unit+1)
	for s := range moments {
		if c.how != hollow {
			moments[s] = c.choose(first, last)
		}
	}
	for _, change := range f.pending {
		for s := change.at / unit; s*unit < change.end(longest); s++ {
			if change.number < moments[s] {
				newest[s] = change.number
			}
		}
	}
	content := resized(slices.Clone(f.durable), longest)
	for _, change := range f.pending {
		for s := change.at / unit; s*unit < change.end(longest); s++ {
			from, to := max(s*unit, change.at), min((s+1)*unit, change.end(longest))
			switch {
			case change.number >= moments[s]:
				continue
			case c.how == prefix && change.number == c.moment-1 && c.rng.IntN(2) == 0:
				continue
			case (c.how == prefix || c.how == sectors) && change.number == newest[s] && c.rng.IntN(8) == 0:
				to = from + c.rng.Int64N(to-from+1)
			}
			if change.data == nil {
				clear(content[from:to])
			} else {
				copy(content[from:to], change.data[from-change.at:])
			}
		}
	}
	if c.how == sectors && c.rng.IntN(2) == 0 { // garbage where the file grew
		for s := int64(len(f.durable))/unit + 1; s < int64(len(moments)); s++ {
			for i := s * unit; newest[s] == 0 && i < min((s+1)*unit, longest); i++ {
				content[i] = byte(c.rng.Uint32())
			}
		}
	}
	return resized(content, size)
}

// size returns the size of a file after the change.
func (c *change) size(before int64) int64 {
	if c.data == nil {
		return c.at
	}
	return max(before, c.at+int64(len(c.data)))
}

// end returns where what changes ends, in a file of at most the longest size.
func (c *change) end(longest int64) int64 {
	if c.data == nil {
		return longest
	}
	return c.at + int64(len(c.data))
}
