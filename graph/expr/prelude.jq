# Functions of jq that the interpreter defines in terms of operations without bounds, defined again in terms of the
# bounded ones. Names that begin with an underscore are natives of this package. Order matters: a function sees those
# above it.

def keys_unsorted: keys;
def input_line_number: 0;
def have_decnum: false;
def have_literal_numbers: true;
def inputs: empty;

def toarray: if type == "array" then . else [.] end;
def first: .[0];
def last: .[-1];
def nth($n): .[$n];
def combinations: if length == 0 then [] else .[0][] as $x | [$x] + (.[1:] | combinations) end;
def combinations(n): [limit(n; repeat(.))] | combinations;
def truncate_stream(f): . as $n | null | f | if .[0] | length > $n then .[0] |= .[$n:] else empty end;
def JOIN($index; key): [.[] | [., $index[key]]];
def JOIN($index; stream; key): stream | [., $index[key]];
def JOIN($index; stream; key; joined): stream | [., $index[key]] | joined;

def map(f): [.[] | f];
def map_values(f):
  if type == "object" then _filled([.[] | [label $first | f | ., break $first]])
  else [.[] | label $first | f | ., break $first] end;
# Functions that call themselves do so in no argument of a call: the interpreter finds what is outside of them at once then.
# Those that go down into a value ask whether it is nested too deeply first.
def walk(f):
  def visit:
    if type == "object" then [.[] | [label $first | visit | ., break $first]] as $values | _filled($values)
    elif type == "array" then [.[] | visit] else . end | f;
  _deep | visit;
def add(f): [f] | add;
def del(f): delpaths([path(f)]);
def recurse(f): def visit: _round | ., (f | visit); visit;
def recurse(f; condition): def visit: _round | ., (f | select(condition) | visit); visit;
def while(condition; update): def loop: _round | if condition then ., (update | loop) else empty end; loop;
def until(condition; update): def loop: _round | if condition then . else update | loop end; loop;
def _recurse: def visit: ., (.[]? | visit); _deep | visit;
def recurse: _recurse;
def paths: path(_recurse) | select(. != []);
def paths(f): path(_recurse | select(f)) | select(. != []);
def to_entries: [keys[] as $key | {key: $key, value: .[$key]}];
def from_entries:
  reduce .[] as $entry ({} | _edit;
    _set([$entry | .key // .Key // .name // .Name]; [$entry | if has("value") then .value else .Value end]))
  | _done;
def with_entries(f): to_entries | map(f) | from_entries;
def tostream:
  path(def visit: (.[]? | visit), .; _deep | visit) as $path
  | getpath($path)
  | reduce path(.[]?) as $last ([$path, .]; [$path + $last]);
def pick(f): . as $whole | reduce path(f) as $path (null | _edit; _set($path; [$whole | getpath($path)])) | _done;

def all(f): all(.[]; f);
def all: all(.[]; .);
def any(f): any(.[]; f);
def any: any(.[]; .);
def IN(stream): any(stream == .; .);
def IN(source; stream): any(source == stream; .);
def INDEX(stream; key): [stream | {key: (key | tostring), value: .}] | from_entries;
def INDEX(key): INDEX(.[]; key);

def min_by(f): _min_by([.[] | [f]]);
def max_by(f): _max_by([.[] | [f]]);
def sort_by(f): _sort_by([.[] | [f]]);
def group_by(f): _group_by([.[] | [f]]);
def unique_by(f): _unique_by([.[] | [f]]);

def fromstream(events):
  foreach events as $event ({done: true};
    (if .done then null | _edit else .edit end) as $edit
    | if $event | length == 2
      then {edit: ($edit | _set($event[0]; [$event[1]])), done: ($event[0] == [])}
      else {edit: $edit, done: ($event[0] | length == 1)}
      end;
    if .done then .edit | _done else empty end);

def match($re; $flags): _matches($re; $flags)[];
def match($re): if $re | type == "array" then match($re[0]; $re[1]) else match($re; null) end;
def test($re; $flags): _test($re; $flags);
def test($re): if $re | type == "array" then test($re[0]; $re[1]) else test($re; null) end;
def capture($re; $flags): match($re; $flags) | .captures | _captures;
def capture($re): if $re | type == "array" then capture($re[0]; $re[1]) else capture($re; null) end;
def scan($re; $flags): _scan($re; $flags + "g")[];
def scan($re): scan($re; null);
def splits($re; $flags): _splits($re; $flags + "g")[];
def splits($re): splits($re; null);
def split($re; $flags): _splits($re; $flags + "g");
def sub($re; replacement; $flags):
  _find($re; $flags) as $found
  | _splice($found; [range($found | _count) as $i | [$found | _named($i) | replacement]])[];
def sub($re; replacement): sub($re; replacement; null);
def gsub($re; replacement; $flags): sub($re; replacement; $flags + "g");
def gsub($re; replacement): gsub($re; replacement; null);
