package expr_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// TestDatesAndNumbers holds what docs/reference/differences.md says of dates and numbers: where they are those of jq 1.8, and where they differ.
func TestDatesAndNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		// As in jq.
		{`"2015-03-05T23:51:47Z" | fromdate`, `1425599507`},
		{`1425599507.9 | todate`, `"2015-03-05T23:51:47Z"`},
		{`1425599621.25 | gmtime`, `[2015,2,5,23,53,41.25,4,63]`},
		{`[2024,12,1,0,0,0,0,0] | mktime`, `1735689600`},
		{`1425599621 | strftime("%A, %B %d, %Y %j %U %V %e %k %l %I %p %Z %z %s %D %F %T %R %r %c")`,
			`"Thursday, March 05, 2015 064 09 10  5 23 11 11 PM UTC +0000 1425599621 03/05/15 2015-03-05 23:53:41 23:53 11:53:41 PM Thu Mar  5 23:53:41 2015"`},
		{`"15-3-5" | strptime("%y-%m-%d")`, `[2015,2,5,0,0,0,4,63]`},
		{`"1425599621" | strptime("%s")`, `[2015,2,5,23,53,41,4,63]`},
		{`[5 % -3, -5 % 3, (5.9 % 3.1), (infinite % 3)]`, `[2,-2,2,1]`},
		{`[-2.5 | round, rint, nearbyint, trunc, ceil]`, `[-3,-2,-2,-2,-2]`},
		{`[8 | logb, significand, lgamma, tgamma, (frexp | .[]), (modf | .[])]`, `[3,1,8.525161361065413,5040,0.5,4,0,8]`},
		{`[ldexp(3; 2), scalb(3; 2), scalbln(3; 2), drem(8; 3), pow(2; 10), fma(2; 3; 4)]`, `[12,12,12,-1,1024,10]`},
		{`[(nan < nan), (nan == nan), ([nan, 1] | sort)]`, `[true,false,[null,1]]`},
		{`[1e1000, ("1e3" | tonumber), (".5" | tonumber)]`, `[1.7976931348623157e+308,1000,0.5]`},
		// Differently.
		{`1425599621 | [localtime, gmtime, strflocaltime("%H %Z")]`, `[[2015,2,5,23,53,41,4,63],[2015,2,5,23,53,41,4,63],"23 UTC"]`},
		{`"2015-03-05 23:51:47 +0100" | strptime("%Y-%m-%d %H:%M:%S %z")`, `[2015,2,5,22,51,47,4,63]`},
		{`"2015-W10-4" | strptime("%G-W%V-%u")`, `[2015,2,5,0,0,0,4,63]`},
		{`"10:20" | strptime("%H:%M")`, `[1900,0,1,10,20,0,1,0]`},
		{`"2015-02-30" | strptime("%Y-%m-%d")`, `[2015,2,2,0,0,0,1,60]`},
		{`["2015-03-05 x" | strptime("%Y-%m-%d")?]`, `[]`},
		{`["5 Mar 2015" | strptime("%d %B %Y")?]`, `[]`},
		{`"2015-03-05T23:51:47+01:00" | fromdate`, `1425595907`},
		{`1425599621.25 | gmtime | mktime`, `1425599621.25`},
		{`[12345678901234567, have_decnum]`, `[12345678901234568,false]`},
		{`[-0, 1e20, 1e21, 0.00001, 0.0000001] | tojson`, `"[0,100000000000000000000,1e+21,0.00001,1e-7]"`},
		{`10 | gamma`, `362880`},
		{`{b: 1, a: 2} | keys_unsorted, tojson`, `[["a","b"],"{\"a\":2,\"b\":1}"]`},
	} {
		p, err := expr.Compile(c.src)
		if err != nil {
			t.Error(err)
			continue
		}
		v, err := p.Eval(nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := string(jsonvalue.Canonical(v)); got != c.want {
			t.Errorf("%s: %s, want %s", c.src, got, c.want)
		}
	}
}
