// Package archtest proves the house rules in the test run: which room may import which, what the pure core must not
// touch, and that every package says what it is for.
package archtest
