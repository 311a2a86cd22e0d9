package expr

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// search runs compiled expressions over texts as Go's own engine does: all ways through the expression at once, one
// character after the other, so that the time is at most the length of the text times that of the expression. Every thread and
// every instruction is charged for, and a search begins anywhere in a text with sight of the character before. It serves one
// evaluation.
//
// Neither other engine replaces it. Go's counts nothing: all matches of x.*y|x in 10 kB take seconds, in 20 kB four times as long, and
// how far it reads may change with its version, whereas a recorded evaluation must cost the same for ever. The bound of package
// backtrack, which package jsonschema shares, is 208 million steps for "[^"]*" over 10 kB of prose, where 80 million are allowed;
// search takes 0.4 ms for it. JSON Schema needs no search: it matches once a text, which Go's engine does in linear time.
type search struct {
	*pattern
	now, next threads
	// slots is the number of group bounds that each thread keeps; bounds are those of the thread that is being
	// added.
	slots  int
	bounds []int
	// around describes the position of added threads; work is not charged for yet, in bytes.
	around syntax.EmptyOp
	work   int
}

// threads are the ways that are being followed at one position, the preferred ones first.
type threads struct {
	pcs []uint32
	// bounds are those of each thread, by its instruction; seen holds round for the instructions that were come to.
	bounds []int
	seen   []uint32
	round  uint32
}

func (t *threads) clear() {
	t.pcs = t.pcs[:0]
	if t.round++; t.round == 0 {
		clear(t.seen)
		t.round = 1
	}
}

const (
	// visitBytes and threadBytes are the cost of coming to an instruction and of a thread reading a character.
	visitBytes  = 4
	threadBytes = 8
	// slotBytes is the cost of each bound that a thread keeps.
	slotBytes = 1
	// workAtOnce is how much work is done before it is charged for.
	workAtOnce = 4 << 10
)

func newSearch(m *meter, p *pattern) (*search, bool) {
	s := &search{pattern: p}
	if p.program == nil {
		return s, true
	}
	size := len(p.program.Inst)
	if !m.allocate(2 * 2 * 4 * size) {
		return nil, false
	}
	for _, t := range []*threads{&s.now, &s.next} {
		t.pcs, t.seen = make([]uint32, 0, size), make([]uint32, size)
	}
	return s, true
}

// keep makes room for the bounds of groups.
func (s *search) keep(m *meter, slots int) bool {
	if s.slots = slots; len(s.bounds) >= slots {
		return true
	}
	room := slots * len(s.program.Inst)
	if !m.allocate(2 * 8 * room) {
		return false
	}
	s.bounds, s.now.bounds, s.next.bounds = make([]int, slots), make([]int, room), make([]int, room)
	return true
}

// find returns the bounds of the first match at or after an offset, nil if there is no match. With slots 0 it returns
// any bounds as soon as there is a match. ok is false at a limit.
func (s *search) find(m *meter, text string, from, slots int) (match []int, ok bool) {
	if !s.keep(m, slots) {
		return nil, false
	}
	at, before := from, rune(-1)
	if from > 0 {
		before, _ = utf8.DecodeLastRuneInString(text[:from])
	}
	s.now.clear()
	for {
		if len(s.now.pcs) == 0 {
			if match != nil || at > 0 && s.atBegin {
				break
			}
			if s.prefix != "" {
				skipped := strings.Index(text[at:], s.prefix)
				if skipped < 0 {
					s.work += len(text) - at
					break
				}
				if skipped > 0 {
					s.work += skipped
					at += skipped
					before, _ = utf8.DecodeLastRuneInString(text[:at])
				}
			}
		}
		r, width := runeAt(text, at)
		if match == nil {
			s.around = syntax.EmptyOpContext(before, r)
			for i := range s.bounds {
				s.bounds[i] = -1
			}
			if slots > 0 {
				s.bounds[0] = at
			}
			s.add(&s.now, uint32(s.program.Start), at)
		}
		after, _ := runeAt(text, at+width)
		s.around = syntax.EmptyOpContext(r, after)
		if match = s.step(match, r, at, at+width); match != nil && slots == 0 {
			break
		}
		if s.work >= workAtOnce && !s.pay(m) {
			return nil, false
		}
		if r < 0 {
			break
		}
		at, before = at+width, r
	}
	return match, s.pay(m)
}

// pay charges for the work so far.
func (s *search) pay(m *meter) bool {
	work := s.work
	s.work = 0
	return m.charge(work)
}

// runeAt returns -1 at the end.
func runeAt(text string, at int) (r rune, width int) {
	if at >= len(text) {
		return -1, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text[at:])
}

// step lets all threads read a character and returns the best match so far.
func (s *search) step(match []int, r rune, at, following int) []int {
	s.next.clear()
	for _, pc := range s.now.pcs {
		bounds := s.now.bounds[int(pc)*s.slots:][:s.slots]
		if s.longest && len(match) > 0 && match[0] < bounds[0] {
			continue // it begins behind the match
		}
		s.work += threadBytes
		i := &s.program.Inst[pc]
		reads := false
		switch i.Op {
		case syntax.InstMatch:
			if !s.longest || len(match) == 0 || bounds[0] < match[0] || at > match[1] {
				match = append(make([]int, 0, s.slots), bounds...)
				if s.slots > 0 {
					match[1] = at
				}
			}
			if !s.longest {
				s.now.pcs = s.now.pcs[:0]
				s.now, s.next = s.next, s.now
				return match // what follows is less preferred
			}
		case syntax.InstRune1:
			reads = r == i.Rune[0]
		case syntax.InstRuneAny:
			reads = r >= 0
		case syntax.InstRuneAnyNotNL:
			reads = r >= 0 && r != '\n'
		default:
			reads = r >= 0 && i.MatchRune(r)
		}
		if reads {
			copy(s.bounds, bounds)
			s.add(&s.next, i.Out, following)
		}
	}
	s.now, s.next = s.next, s.now
	return match
}

// add follows an instruction to those that read a character or match.
func (s *search) add(t *threads, pc uint32, at int) {
	for t.seen[pc] != t.round {
		t.seen[pc] = t.round
		s.work += visitBytes
		switch i := &s.program.Inst[pc]; i.Op {
		case syntax.InstFail:
			return
		case syntax.InstAlt, syntax.InstAltMatch:
			s.add(t, i.Out, at)
			pc = i.Arg
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^s.around != 0 {
				return
			}
			pc = i.Out
		case syntax.InstCapture:
			if int(i.Arg) < s.slots {
				old := s.bounds[i.Arg]
				s.bounds[i.Arg] = at
				s.add(t, i.Out, at)
				s.bounds[i.Arg] = old
				return
			}
			pc = i.Out
		case syntax.InstNop:
			pc = i.Out
		default:
			s.work += slotBytes * s.slots
			copy(t.bounds[int(pc)*s.slots:], s.bounds[:s.slots])
			t.pcs = append(t.pcs, pc)
			return
		}
	}
}
