// Package view says where a run stands. It is pure: it reads a machine, a projection and a program, and makes of them the
// answer of every call. Another host of the machine imports it rather than copy it.
package view
