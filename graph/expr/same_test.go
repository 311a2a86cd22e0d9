package expr_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// sampleState has something of every kind.
const sampleState = `{
	"n": 5, "f": 2.5, "neg": -7, "zero": 0, "big": 9007199254740992, "t": true, "nil": null,
	"s": "one, two,three  four", "u": "aé😀éb", "e": "", "num": "12.5", "text": "{\"a\":[1,2]}",
	"l": [3, 1, 2, 3], "mixed": [null, true, false, 1, "s", [1], {"a": 1}], "empty": [], "none": {},
	"o": {"b": 2, "a": 1, "c": {"d": [1, {"e": null}], "x": "y"}},
	"items": [
		{"id": "x", "k": 2, "tags": ["p", "q"], "v": 1.5}, {"id": "y", "k": 1, "tags": [], "v": 2},
		{"id": "z", "k": 2, "tags": ["q"], "v": null}
	],
	"m": [[1, 2], [3, 4], [5]]
}`

// same are programs that have the same result with the interpreter as it comes: what is put around it must not show.
// Each is run over the whole sample state. Errors compare as errors, whatever their text.
var same = strings.Split(strings.TrimSpace(`
.
.n
.o.c.d[1].e
.n.x
.["o"]["a"]
.l[1:]
.l[:-1]
.u[1:3]
.u[-1:]
.l[1:][1:]
.nil[1:2]
.n[1:]
.l[]
.o[]
.n[]
.n[]?
[.l[] | . * 2]
[.l[]?, .n[]?]
[.. | numbers]
..
..?
.. | numbers
[..]
[.o | .. | type]
.o..
.o.c | ..
[..[]?]
[.. | .a?]
{a: [..] | length, b: ..}
[.l | .., 1]
(.. | strings) as $s | $s
[recurse]
[first(..)], [limit(3; ..)]
path(..)
[path(..)]
[path([..] | .[0])]
[path(.o | ..)]
.o | .. |= .
(.o | .. | numbers) |= . + 1
(.o | .. | numbers) += 1
(.o | .. | numbers) = 1
.o |= [..]
.l |= [.. | numbers]
del(.o | .. | numbers)
del(..)
[.o | to_entries[] | ..]
def f: ..; [f] | length
def f: ..; [path(f)] | length
def f(g): [g]; f(..)
def f(g): [path(g)]; f(..)
def f(g): [path(g)]; [f(.. | numbers)]
[paths]
[paths(numbers)]
[paths(type == "object")]
[paths(..)] | length
[paths(.a?)]
[paths(error)]
[paths(empty)]
[paths(true, true)] | length
.n | [paths], [..]
.empty | [paths], [..]
path(paths)
[getpath(paths)] | length
getpath(paths(numbers)) |= . + 1
reduce .. as $x (0; . + 1)
[foreach .. as $x (0; . + 1)]
[if .. then 1 else 2 end] | length
[try .. catch .] | length
[label $x | .. | ., break $x] | length
"\([..] | length)"
[.. == 5] | any
[..] as [$x] | $x.n
path(if .t then .. else . end)
[path(.. as $x | .l)] | length
.items[].tags[]
.items[1:][].id
[.items[].tags[]?]
.items[.n - 4].id
.l[.l[1]]
.o | .["a", "b"]
.n + 1, .n - 1, .n * 2, .n / 2, .n % 2
.f + 1, .f * .f, .n / 0.5, -.n, -(.f)
.neg % 3, 5 % -3, 5.9 % 2.1, -5.9 % 2
.n % 0
.n / 0
1 / 3
.s + "x", .nil + 1, 1 + .nil, .nil + .nil
.l + [9], [] + .l, .l + []
.o + {z: 1}, {} + .o, .o + {}
.n + "x"
.t + 1
.s + .l
.l - [3], .l - .l, .mixed - [null, [1]]
.n - "x"
.o - .o
"ab" * 3, "ab" * 0, 0 * "ab", "ab" * -1, "ab" * 0.5, "ab" * 1.9
.l * 2
.o * {c: {d: 1, z: 2}}, {a: 1} * {a: {b: 2}}
.s / ", ", .s / "", "" / "x", "a,b" / ",b"
.s / 1
1 < 2, 2 < 1, 1 <= 1, 1 > 2, 2 >= 2, 1 == 1.0, 1 != 2
"a" < "b", "a" == "a", "é" > "z"
[1,2] < [1,3], [1] < [1,2], [] == [], {} == {}
{a:1} == {a:1.0}, {a:1} < {a:2}, {a:2} < {b:1}, {a:1,b:2} == {b:2,a:1}
.mixed | [.[] as $a | .[] as $b | [$a < $b, $a == $b, $a >= $b]]
nan < nan, nan == nan, nan > nan, nan < 1, 1 < nan, [nan] == [nan], [nan] < [1]
[nan, 1, null] | sort
null == false, null < false, false < true, true < 0, 0 < "", "" < [], [] < {}
(1,2) + (10,20)
(1,2) * (3,4), [(1,2) - (3,4)]
[(1,2) == (2,1)], [(1,2) < (2,3)]
.n as $x | .f as $y | [$x + $y, $x * $y]
. as {n: $a, o: {b: $b}} | [$a, $b]
.l as [$a, $b] | $a + $b
.items[0] as {("i" + "d"): $x} | $x
.items[0] as {"id": $x, $k} | [$x, $k]
.items[0] as {"\("id")": $x} | $x
[.l[] as $x | .m[][] as $y | select($x == $y)]
.l as [$a] ?// $a | $a
"x\(.n)y\(.s)z"
"\(.o)", "\(.l)", "\(.nil)", "\(.f)", "\("q")"
"\(1,2)-\(3,4)"
@text "v\(.o)", @json "v\(.o)", @html "<\("<&'\">")>", @uri "?\("a b/é")", @csv "\([1,"a\"b",null,true])"
@tsv "\(["a\tb","c\\d"])", @sh "echo \("it's")", @base64 "\("hi")", @base64d "\("aGk=")", @urid "\("a%20b")"
.s | @text, @json, @html, @uri, @base64
.o | @html
.l | @csv, @tsv, @sh
.o | @csv
.s | @foo
@json
"a" | @base64d
{"a\(.n)": 1, ("b" + "c"): 2}
.n as $x | {"s", "n": 1, $x}
{s, n, "e", "\("f")"}
{(.s, .u): 1}
{a: (1,2), b: (3,4)}
{"a": .n, b: {c: .f}}
{(.n): 1}
.a = 1
.n = 2
.o.a = 5
.o.c.d[1].e = "new"
.o.c.d[5] = 1
.l[0] = 9, .l[-1] = 9
.l[-9] = 1
.l[1:3] = ["x"], .l[:1] = [], .l[1:] = [1,2,3,4]
.l[1:2] = 5
.new[2].x = 1
.n.x = 1
.s[0] = 1
.l["x"] = 1
.o[0] = 1
.l[.n - 4] = 7
.l[1:][0] = 5, .l[1:][1:] = ["z"], .l[1:3][0] |= . * 9, .l[0.5:1.5] = ["h"], .l[nan:] = [1], .l[:nan] = [1], .l[:-0.5] = [1], .l[-2:] = [], .l[9:] = [1]
.nil[1:] = [1], .new[:2] = ["q"], .nil[0:1][0] = 1
.l["a":] = [1]
.l[:"a"] = [1]
.s[1:] = ["x"]
.l[{"start": 1}] = [1]
.l[{"start": 1, "end": 2}] = [7]
.l[[1]] = 2
.l[null] = 1
.o[null] = 1
.nil[true] = 1
.l[1.7] = "t", .l[-1.2] = "u"
del(.l[0.5:1.5], .nil[1:2], .l[2:1], .nil.x, .nil[3])
del(.l[1:][0], .items[0:2][].tags)
del(.l[-9], .o.c.d[-1])
del(.l.x)
del(.l[{"start": 0, "end": 1}])
delpaths([[[1]]])
delpaths([["l", true]])
.items[1:] |= map(.id), .items[:1][0].id |= ., .l[1:2][] |= empty, .m[0][1:] |= empty, .l[1:] |= (.[0], 9), .m[1:][] += [0]
.items[0].k = 0
.items[0].tags[] = "t"
(.n, .f) = 1
.n = (1, 2)
.l[] = (1, 2)
.o[] = .n
.a.b.c = .n
.[("n", "f")] = null
.n |= . + 1
.n |= (1, 2)
.n |= empty
.l |= map(. + 1)
.l[] |= . * 2
.l[] |= empty
.l |= empty
.items[] |= (.k += 1)
.items[] |= select(.k == 2)
.items[].tags |= length
.items |= sort_by(.k)
.o[] |= .
.o |= with_entries(.value |= tostring)
(.l, .empty) |= length
.l[1:] |= map(. * 10)
.l[1:3] |= reverse
.m[][0] |= . + 1
.. |= (numbers |= . + 1)
(.. | numbers) |= . + 1
(.. | select(type == "number")) |= empty
.o.c.d |= (.[0], .[1])
.n += 1, .n -= 1, .n *= 2, .n /= 2, .n %= 2, .nil //= 3, .n //= 3
.l[] += 1
.n += (1, 2)
.l += [.n]
.o += {z: .n}
.o *= {c: {z: 1}}
.s += "x"
.n += "x"
.items[].k *= 2
(.n, .f) += 10
.zero //= 1, .t //= 2, .new //= {}
.o.c.x |= ascii_upcase
.l |= .[1:]
.items[0] |= del(.tags)
.a |= .b
.l[0] |= error("x")
try (.l[] |= error("x")) catch .
.items[] |= if .k == 2 then empty else . end
to_entries, with_entries(.key |= "p" + .), (.o | from_entries?)
.o | to_entries | from_entries
.items | map({key: .id, value: .k}) | from_entries
del(.n), del(.n, .o.a), del(.l[0, 2]), del(.l[]), del(.items[] | select(.k == 2)), del(.)
del(.l[1:3]), del(.l[-1]), del(.o.c.d[0]), del(.nope.x), del(.l[9])
del(.n.x)
del(.. | select(. == 1)?)
delpaths([["o", "a"], ["o"], ["l", 0], ["l", 1]]), delpaths([])
delpaths([["n", "x"]])
delpaths(1)
delpaths([1])
setpath(["o", "a"]; 9), setpath([]; 1), setpath(["p", 0, "q"]; 1), setpath(["l", {"start": 1, "end": 2}]; ["w"])
setpath(["n", "x"]; 1)
setpath("x"; 1)
getpath(["o", "c", "x"]), getpath(["nope", "x"]), [getpath(["n"], ["f"])]
getpath(["n", "x"])
[paths], [paths(type == "number")], [path(.o[])], [path(..)] | length
path(.l[1:3]), path(.l[1:][0]), [path(.items[] | select(.k == 2) | .id)], path(first(.l[])), [path(.l | .[1:] | .[])]
path(.n + 1)
path(.l | map(.))
pick(.o.c.x), pick(.l[1]), pick(.items[].id), pick(.o["a", "b"])
pick(.l[-1])
[tostream] | length, fromstream(tostream), fromstream(1 | truncate_stream([[0], 1], [[1, 0], 2], [[1, 0]], [[1]]))
[1 | truncate_stream([[0], 1], [[1, 0], 2], [[1, 0]], [[1]])]
[fromstream(.items | tostream)]
map(1), (.o | map(.)), (.l | map(. + 1)), (.l | map(., .)), (.l | map(empty))
.n | map(.)
(.o | map_values(.), map_values(empty)), (.l | map_values(. + 1))
.l | map_values(empty), map_values(., .)
walk(if type == "number" then . + 1 else . end)
walk(if type == "object" then del(.a) else . end)
[walk(numbers)]
.l | add, length, reverse, sort, unique, min, max, first, last, tojson, tostring, any, all, (. | @json)
.o | add?, length, keys, tojson, tostring, any, all
.n | length, tojson, tostring, keys?, reverse?, add?, sort?, first?
.s | length, utf8bytelength, explode, tojson, tostring, ascii_downcase, ascii_upcase, ltrimstr("one"), rtrimstr("four"), reverse?
.u | length, utf8bytelength, explode, (explode | implode), tojson, .[1:2], .[-2:]
.t | length
.neg | length, abs, fabs, floor, sqrt, tostring
.mixed | map(type), map(tojson), map(tostring), sort, unique, group_by(type), map(length?)
.mixed | add
.mixed | min, max, index("s"), index([1]), indices(1)
[.items[].tags] | add, flatten, flatten(0), flatten(1), transpose, (map(length))
.l | flatten(-1)
.mixed | flatten
.m | transpose, flatten, add, map(add), combinations?
[.m | combinations]
[[1,2] | combinations(2)]
.items | sort_by(.k), sort_by(.k, .id), group_by(.k), unique_by(.k), min_by(.v), max_by(.v), sort_by(.id) | map(.id?)
.items | sort_by(.nope.x?), group_by(.tags | length), min_by(.k).id, max_by(.k).id
.n | sort_by(.x)
[] | min_by(.x), max_by(.x), sort_by(.x), group_by(.x), unique_by(.x), add, min, max
.l | any(. > 2), all(. > 0), any(. > 5), all(. > 1), any(empty), all(empty)
any(.l[]; . == 2), all(.l[]; . == 2), isempty(.l[]), isempty(empty), first(.l[]), last(.l[]), nth(1; .l[]), nth(1)?
[limit(2; .l[])], [limit(0; .l[])], [skip(2; .l[])], [first(range(10; 0; -3))], [until(. > 100; . * 2)?]
.n | [while(. < 50; . * 2)], until(. > 50; . * 2), [limit(4; repeat(. + 1))]
.n | IN(1, 5), IN(2), (1 | IN(.)), IN(1, 2; 2, 3), IN(.; 5)
INDEX(.items[]; .id), (.items | INDEX(.k)), INDEX(.items[]; .id, .k), INDEX(empty; .)
.items | [JOIN({"x": 1}; .id)], [JOIN({"x": 1}; .[]; .id)], [JOIN({"x": 1}; .[]; .id; add?)]
.l | contains([3]), contains([3, 9]), inside([1, 2, 3, 4]), index(3), rindex(3), indices(3), indices([1, 2]), index([]), has(0), has(9)
.s | contains("two"), inside("one, two,three  four!"), index("t"), rindex("t"), indices("t"), indices(", "), index(""), startswith("one"), endswith("x")
.o | contains({a: 1}), contains({c: {x: "y"}}), contains({a: 2}), has("a"), has("z"), inside({a: 1})
.n | contains("x")
.s | contains(1)
.s | startswith(1)
.n | startswith("x")
.s | ltrimstr(1)
.s | split(", "), split(""), split("zz"), split(" +"; null), split(", *"; "g"), [splits(", *")], ascii_downcase
.n | split(",")
.s | split(1)
.s | test("TWO"), test("TWO"; "i"), test(["TWO", "i"]), [match("t"; "g").offset], match("(?<w>t\\w+)").captures, match(["T", "gi"]).string
.s | capture("(?<a>\\w+), (?<b>\\w+)"), capture(["(?<A>O)NE", "i"]), [scan("\\w+")], [scan("(t)(\\w)")], [scan("T"; "i")], [scan("x*")] | length?
.u | [match("é"; "g") | [.offset, .length]], [match(""; "g").offset], [match("(x)?é"; "g").captures], [scan(".")], sub("é"; "e"), gsub("é"; "e"), gsub(""; "-")
.s | sub("(?<x>t\\w+)"; "<\(.x)>"), gsub("(?<x>t)"; "<\(.x)>"), gsub("t"; "1", "2"), sub("t"; "a", "b"), gsub("T"; "x"; "i"), sub("zz"; "y"), gsub("o|(?<f>f)"; .f), gsub("\\s+"; " "), gsub("^|$"; "|"), gsub("t"; empty)
.s | gsub("(?<x>[aeiou])"; if .x == "o" then "0", "1" else "3" end), [sub("e"; "a", "b", "c"; "g")]
.s | sub("t"; 1)
.s | test("(")
.s | test(1)
.n | test("x")
.s | test("x"; 1)
.s | test("x"; "z")
.s | [match("a*"; "g").offset], [match("(a*)(b*)"; "g") | .captures | map(.string)], [match("\\b"; "g").offset], [match("e?"; "g").length]
.e | [match(""; "g").offset], [scan("")], split(""), split("x"), gsub(""; "x"), sub("^"; "x"), [splits("x")], explode, length, tojson
.num | tonumber, (tonumber | . + 1), tostring
"1e3", "-1.5", "0x1", "nan", "", " 1", "1 ", "12345678", ".5", "5.", "+1" | try tonumber catch "no"
.l | tonumber
.text | fromjson, (fromjson | .a[0] + 1), (fromjson | tojson)
"[1,2", "", "nul", "{\"a\":1} x", "1 2" | try fromjson catch "no"
.n | fromjson
"true", "false", true | toboolean
.l | join(","), join(""), (map(tostring) | join("-")), ([] | join(","))
[1, null, "a", true] | join("-")
[[1]] | join(",")
.o | join(",")?
.l | join(1)?
[65, 66, 233, 128512] | implode
[1.5, -1] | implode?
"x" | implode?
.s | ltrim, rtrim, trim, trimstr("o"), ascii_downcase
"  x \t" | ltrim, rtrim, trim
.n | trim
.l | bsearch(2), ([1,2,3] | bsearch(2)), ([1,2,3] | bsearch(0)), ([1,2,3] | bsearch(9)), ([] | bsearch(1))
1425599621 | todate, gmtime, (gmtime | mktime), strftime("%Y-%m-%dT%H:%M:%SZ"), (gmtime | todate), strftime("%A, %B %d, %Y")
"2015-03-05T23:51:47Z" | fromdate, fromdateiso8601, strptime("%Y-%m-%dT%H:%M:%SZ"), (strptime("%Y-%m-%dT%H:%M:%SZ") | mktime)
"10:20" | strptime("%H:%M")
"x" | strptime("%Y")
1 | strptime("%Y")
"x" | strftime("%Y")
.n | floor, ceil, round, sqrt, pow(.; 2), log, exp, log2, exp2, exp10, trunc, significand, logb, gamma, frexp, modf, ldexp(.; 2), isnormal, isinfinite, isnan, infinite, -infinite
.n | atan2(.; 1), fmin(.; 1), fmax(.; 9), fma(.; 2; 1), drem(.; 3), hypot(.; 1), jn(1; .), yn(1; .), j0, y1
nan | isnan, tojson
[.n, .f] | map(tojson)
1e1000, -1e1000, 5e-324, 1e17, 1.5e300, 0.1 + 0.2, 3.0, 1.10, 100000000000000000000
[range(5)], [range(2; 5)], [range(0; 10; 3)], [range(5; 0; -2)], [range(0; 1; 0.3)], [range(1, 2; 3, 4)]
if .t then 1 else 2 end, if .nil then 1 end, if .n > 3 then "a" elif .n then "b" else "c" end, if empty then 1 else 2 end, [if (true, false) then 1 else 2 end]
.t and .nil, .t or error, .nil and error, (.t, .nil) and (.t, .nil), .t | not
.nil // 1, .n // 1, (.nil, false) // 2, empty // 3, (1, null, 2) // 4
error // 5
.n.x // 6
.x.y // 6
.n.x == 1
.n.x and true
.nil and .n.x
.n.x or true
try error("x") catch ., try error({a: 1}) catch .a, try error(null) catch ., (try error("x")), [.l[] | try (if . == 1 then error("e") else . end) catch "c"]
error("x")
error({a: 1})
error(null)
error
.n | error
(.n | .x?), [.l[] | .x?]
.n.x.y?
reduce .l[] as $i (0; . + $i), reduce empty as $i (7; .), reduce .o[] as $v ([]; . + [$v]), reduce (1, 2) as $x (0, 10; . + $x)
reduce .items[] as $i ({}; .[$i.id] = $i.k), reduce .items[] as $i ({}; .[$i.id] = $i)
reduce .items[] as $i ({}; .[$i.k | tostring] += [$i.id]), reduce .items[] as $i ({n: 0}; .n += $i.k | .ids += [$i.id])
reduce .items[] as $i ([]; .[$i.k] = $i.id), reduce .l[] as $x ([]; . + [$x] | .[0] = $x)
reduce .l[] as $x ({l: [0]}; .l[.l | length] = $x), reduce .l[] as $x ({a: [], b: []}; .a = .b | .b += [$x])
reduce .l[] as $x ({a: {}}; .b = .a | .a.x = $x | .c[.c | length] = .a), reduce .l[] as $x ({}; .x = {y: .x} | .x.z = $x)
reduce .l[] as $x ([0]; . += [.[0]] | .[0] = $x), reduce .l[] as $x ({a: [1], b: []}; .b += .a | .a[0] = $x | .b[0] = 9)
reduce .l[] as $x ({a: {n: 0}}; .b = .a | .b.n = $x | .a.n += 1), reduce .l[] as $x ({}; .a.b = $x | .c = .a | .c.b = 0)
reduce .l[] as $x ({n: 1}; .n += (1, 2)), reduce .l[] as $x ({n: 1}; .n = (.n, $x)), reduce .l[] as $x ({n: [1, 2]}; .n[] += $x)
reduce .l[] as $x (.; .n = $x), reduce .l[] as $x ({a: [1, 2, 3]}; .a[0] |= empty | .b += 1), reduce .l[] as $x (.o; .[] = $x)
reduce .l[] as $x ({a: [1, 2, 3, 4, 5]}; .a[] |= (if . == $x then empty else . end)), reduce .l[] as $x ({}; .[("a", "b")] += $x)
reduce .l[] as $x ({}; .v = [.v, $x]), reduce .l[] as $x ({a: 1}; .a |= . + $x | .b = .a), reduce .l[] as $x ({v: {w: 1}}; .v |= {w: ., x: $x})
reduce .l[] as $x ({l: [1, 2, 3]}; .l[1:] = [$x] | .m = .l[:1] | .m[0] += 1), reduce .l[] as $x ([[1]]; .[0] += .[0] | .[1] = .[0])
reduce .l[] as $x ({}; .a += $x | error("stop"))
try (reduce .l[] as $x ({}; .a += $x | .n.m = 1 | .a.b = 2)) catch "caught"
[foreach .l[] as $i (0; . + $i)], [foreach .l[] as $i (0; . + $i; [$i, .])], [foreach .l[] as $i ({}; .[$i | tostring] = $i)]
[label $out | .l[] | if . == 2 then break $out else . end], [label $a | label $b | 1, break $a, 2], first(label $f | 1, break $f, 2)
[.l[] | label $x | (., break $x, 9)]
def f: . + 1; .n | f | f
def f(g): g | g; .n | f(. * 2)
def f($a; $b): $a + $b; f(1; 2), f(1, 2; 3)
def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 5 | fac
def map(f): "mine"; (.l | map(.)), (.m | map_values(length))
def sort_by(f): "mine"; (.l | sort_by(.)), (.items | group_by(.k) | length)
def tojson: "mine"; .l | tojson, tostring, "\(.)"
def path(f): "mine"; .n |= . + 1 | .n, path(.n), [paths] | length?
def _f: 3; _f
def length: "mine"; .l | length, map(length), (map(length) | add)
def add: "mine"; .l | add, add(.[])
def f: def g: 3; g; f
def f(length): length; f(5)
def f($length): [$length, length]; f(5)
[.l[] | . as $x | [$x, $x + 1] | add]
[recurse(if . < 3 then . + 1 else empty end)] | length?
.n | [recurse(if . < 8 then . + 1 else empty end)], [recurse(. + 1; . < 8)]
[.items[] | {id, t: (.tags | length)}]
.items | map(select(.tags | index("q"))) | map(.id)
.items | map(.v // 0) | add / length
[.items[] | .tags[] as $t | {t: $t, id}] | group_by(.t) | map({t: .[0].t, ids: map(.id)})
env | length
$ENV.PATH
$ENV | keys
input
debug
splits("x")
nope
nope(1)
$nope
import "a" as a; 1
include "a"; 1
.o | ascii?
getpath(1)
halt_error
1, halt_error("x")
[limit(3; range(10))] | .[1:] | first
@sh "a \(.l)"
ltrimstr("x")
.l | tojson | fromjson
[splits("a";"b";"c")]?
.o | keys, (keys | length)
.s | ascii_downcase | split(" ") | map(select(length > 0))
[.o | paths(..)] | length
.o | tojson | test("b")
[.l[] | tostring] | join(",") | split(",") | map(tonumber) | add
.["n","f"]
..
."o"."a", ."o"?."a"?, .o."c"["d"][0]
.l | .[1], .[-1], .[9], .[1.7]
.l | .["x"]
.o | .[0]
.l | .[[1]], .[[3]], .[[2, 3]]
.l | .[{"start": 1, "end": 3}]
.u | .[0], .[2], .[-1]
.s[.n:], .s[:.n], .l[.neg:]
`), "\n")

func TestSameAsInterpreter(t *testing.T) {
	t.Parallel()
	state := object(t, sampleState)
	before := string(jsonvalue.Canonical(state))
	for _, src := range same {
		t.Run(src, func(t *testing.T) {
			want, wantErr := expr.Interpreter(src, object(t, sampleState))
			p, err := expr.Compile(src)
			if err != nil {
				if wantErr == nil {
					t.Fatalf("%v, the interpreter compiles it", err)
				}
				return
			}
			got, err := p.Eval(state)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("%s, %v; the interpreter gives %s, %v", jsonvalue.Canonical(got), err, jsonvalue.Canonical(want), wantErr)
			}
			if err == nil && !jsonvalue.Equal(got, want) {
				t.Errorf("%s; the interpreter gives %s", jsonvalue.Canonical(got), jsonvalue.Canonical(want))
			}
			if after := string(jsonvalue.Canonical(state)); after != before {
				t.Fatalf("the state was changed to %s", after)
			}
		})
	}
}

// TestRandomProgramsAreTheInterpreters compares random paths, literals and operators with what the interpreter alone
// makes of them.
func TestRandomProgramsAreTheInterpreters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var program func(depth int) string
	program = func(depth int) string {
		if depth == 0 || random.IntN(4) == 0 {
			return pick(`.`, `.n`, `.s`, `.o`, `.o.a`, `.o.c.x`, `.l`, `.nil.x`, `.n.x`, `.t`, `.missing`, `.["e"]`, `."u"`, `.neg`, `.mixed`,
				`1`, `5`, `-7`, `2.5`, `0`, `"one"`, `""`, `true`, `false`, `null`, `-0`, `9007199254740993`)
		}
		return "(" + program(depth-1) + " " + pick("==", "!=", "<", "<=", ">", ">=", "and", "or", "//") + " " + program(depth-1) + ")"
	}
	state := object(t, sampleState)
	for range soak.Size(500, 200, 20_000) {
		src := program(3)
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := p.Eval(state)
		want, wantErr := expr.Interpreter(src, state)
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !jsonvalue.Equal(got, want) {
			t.Fatalf("%s: %s, %v; the interpreter gives %s, %v", src, jsonvalue.Canonical(got), gotErr, jsonvalue.Canonical(want), wantErr)
		}
	}
}

// TestRandomReducesAreTheInterpreters: a reduce that changes its value in place cannot be told from one that does not.
func TestRandomReducesAreTheInterpreters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var right func(depth int) string
	right = func(depth int) string {
		if depth == 0 {
			return pick(`.`, `.a`, `.a.b`, `.l`, `.l[0]`, `$i`, `$i.k`, `$i.tags`, `$x`, `1`, `"s"`, `{}`, `[]`, `{a: 1}`, `empty`, `.l[]`, `-1`)
		}
		l, r := right(depth-1), right(depth-1)
		return pick(l, "["+l+"]", "{b: "+l+"}", "{a}", "("+l+" | "+r+")", "("+l+", "+r+")", "("+l+" // "+r+")", "("+l+" as $y | "+r+")",
			"(if "+l+" then "+r+" end)", "(if "+l+" then 1 else "+r+" end)", "("+l+" == "+r+")", "(["+l+"] + ["+r+"])", "("+l+" | tojson)", "("+l+")?")
	}
	state := object(t, sampleState)
	for range soak.Size(500, 200, 30_000) {
		steps := []string{}
		for range 1 + random.IntN(3) {
			steps = append(steps, pick(`.a`, `.a.b`, `.l`, `.l[1]`, `.l[1:]`, `.[$i.id]`, `.`, `(.a, .l)`, `.l[]`)+
				pick(` = `, ` |= `, ` += `, ` //= `)+right(1+random.IntN(2)))
		}
		src := `{a: {b: 1}, l: [1, [2]]} as $x | reduce .items[] as $i ($x; ` + strings.Join(steps, " | ") + `)`
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := p.Eval(state)
		want, wantErr := expr.Interpreter(src, state)
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !jsonvalue.Equal(got, want) {
			t.Errorf("%s: %s, %v; the interpreter gives %s, %v", src, jsonvalue.Canonical(got), gotErr, jsonvalue.Canonical(want), wantErr)
		}
	}
}

// TestPreludeKnowsItsNatives: what the prelude calls is there, and each of its functions compiles.
func TestPreludeKnowsItsNatives(t *testing.T) {
	t.Parallel()
	for _, name := range expr.PreludeNames() {
		name, arity, _ := strings.Cut(name, "/")
		if strings.HasPrefix(name, "_") {
			continue // programs cannot call it
		}
		src := name
		if n := int(arity[0] - '0'); n > 0 {
			src += "(" + strings.Repeat(".;", n-1) + ".)"
		}
		if _, err := expr.Compile(src); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestOrderOfValues(t *testing.T) {
	t.Parallel()
	list := object(t, sampleState)["mixed"].([]any)
	list = append(list, 1, 1.5, -3, "", "a", "ab", []any{}, []any{1.0, nil}, []any{1}, map[string]any{}, map[string]any{"a": 2},
		map[string]any{"a": 1, "b": nil}, map[string]any{"b": 0}, object(t, sampleState)["o"])
	for _, l := range list {
		for _, r := range list {
			order, equal := expr.Compare(l, r)
			if want := gojq.Compare(l, r); order != want || equal != (want == 0) {
				t.Errorf("%v and %v: %d, %v; want %d", l, r, order, equal, want)
			}
		}
	}
}
