// Package perform performs attempts: it says what this process can perform, calls executors of activities and delegates, and makes
// outcomes of what they answer. It knows nothing of histories; who records an outcome, and what follows, is the caller's
// business. Another host of the machine imports it rather than copy it.
package perform
