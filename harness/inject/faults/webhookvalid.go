package faults

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/inject/webhook"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Validate refuses what an API server wouldn't register, and rules that can't be followed.
func (f *Webhook) Validate() error {
	switch {
	case f.Conversion != nil && f.Extender != nil:
		return errors.New("conversion and extender are both given (want one of them)")
	case f.Conversion != nil:
		return errors.Join(
			f.only("conversion"),
			within("conversion", f.Conversion.validate()),
			f.Rules.Validate(webhook.Conversion{}),
		)
	case f.Extender != nil:
		return errors.Join(
			f.only("extender"),
			within("extender", f.Extender.validate()),
			f.validExtender(),
		)
	}
	var errs []error
	if !slices.Contains(admissions, f.Admission) {
		errs = append(
			errs,
			fmt.Errorf(
				"admission is %q (want %s)",
				f.Admission,
				strings.Join(admissions, " or "),
			),
		)
	}
	if len(f.Resources) == 0 {
		errs = append(errs, errors.New("resources is empty (want resources: [pods])"))
	}
	for _, o := range f.Operations {
		if !slices.Contains(operations, o) || o == "*" && len(f.Operations) > 1 {
			errs = append(
				errs,
				fmt.Errorf("operations has %q (want some of %s, or \"*\" alone)", o,
					strings.Join(operations[1:], ", ")),
			)
		}
	}
	if !slices.Contains(policies, f.FailurePolicy) {
		errs = append(
			errs,
			fmt.Errorf(
				"failurePolicy is %q (want %s)",
				f.FailurePolicy,
				strings.Join(policies, " or "),
			),
		)
	}
	if f.TimeoutSeconds < 1 || f.TimeoutSeconds > 30 {
		errs = append(errs, fmt.Errorf("timeoutSeconds is %d (want 1 to 30)", f.TimeoutSeconds))
	}
	if len(f.Webhooks) == 0 {
		return errors.Join(append(errs, f.Rules.Validate(webhook.Admission{}))...)
	}
	if len(f.Rules) > 0 {
		errs = append(errs, errors.New("rules and webhooks are both given (want rules for one webhook, webhooks for several)"))
	}
	return errors.Join(append(errs, f.validWebhooks())...)
}

// only refuses what only an admission webhook has, beside the field that makes the fault another webhook.
func (f *Webhook) only(other string) error {
	var errs []error
	normal := newWebhook()
	for field, given := range map[string]bool{"resources": len(f.Resources) > 0, "namespaces": len(f.Namespaces) > 0,
		"webhooks": len(f.Webhooks) > 0, "admission": f.Admission != normal.Admission,
		"groups": !slices.Equal(f.Groups, normal.Groups), "operations": !slices.Equal(f.Operations, normal.Operations),
		"failurePolicy": f.FailurePolicy != normal.FailurePolicy, "timeoutSeconds": f.TimeoutSeconds != normal.TimeoutSeconds} {
		if given {
			errs = append(
				errs,
				fmt.Errorf("%s has no meaning with %s (want one of them)", field, other),
			)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// within returns an error as one of a field, nil for nil.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	return &kinds.FieldError{Field: field, Err: err}
}

// validExtender refuses rules that some verb has no answer by. What is wrong for several verbs is said once.
func (f *Webhook) validExtender() error {
	var errs []error
	for _, verb := range f.Extender.Verbs {
		for _, err := range kinds.Each(f.Rules.Validate(webhook.Extender{Verb: verb})) {
			if !slices.ContainsFunc(errs, func(said error) bool { return said.Error() == err.Error() }) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// A webhook's name is a part of a DNS name.
var webhookName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

func (f *Webhook) validWebhooks() error {
	var errs []error
	names := map[string]bool{}
	for i, w := range f.Webhooks {
		note := func(err error) {
			for _, one := range kinds.Each(err) {
				errs = append(errs, webhook.Within(fmt.Sprintf("webhooks[%d]", i), one))
			}
		}
		if !webhookName.MatchString(w.Name) || names[w.Name] || strings.HasPrefix(w.Name, "seen") {
			note(fmt.Errorf("name is %q (want small letters, digits and hyphens, each name once, and none that begins with "+
				"seen)", w.Name))
		}
		names[w.Name] = true
		if w.Admission != "" && !slices.Contains(admissions, w.Admission) {
			note(
				fmt.Errorf(
					"admission is %q (want %s)",
					w.Admission,
					strings.Join(admissions, " or "),
				),
			)
		}
		note(w.Rules.Validate(webhook.Admission{}))
	}
	return errors.Join(errs...)
}
