//! The order of the requests of an iteration: groups and their repeats unrolled before the start, so that a user who
//! goes on reads one number.

use loadlens_base::{Fault, Faults};

use crate::{Group, Scenario};

/// Ends an iteration in [`Flow::order`].
const END: u16 = u16::MAX;
/// Requests of one iteration of every scenario of a stream, together; a position is two bytes in a user.
const MAX_LENGTH: u64 = 65_000;
/// The deepest nesting.
const MAX_DEPTH: usize = 16;

/// The unrolled scenarios of one stream, one after the other.
#[derive(Debug, Default)]
pub struct Flow {
    /// Indices of steps, each scenario ended by [`END`].
    order: Vec<u16>,
    /// By position: the edges of groups; as far as there are groups.
    edges: Vec<Edges>,
    /// Groups of the scenarios so far.
    groups: usize,
    /// The most groups that are open at once.
    depth: usize,
}

/// The groups of which a request is the first or the last.
#[derive(Clone, Debug, Default)]
struct Edges {
    /// Numbers, in the stream, of the groups that begin with it, outer ones first.
    begins: Box<[u16]>,
    /// Number of groups that end with it: the innermost.
    ends: u16,
}

/// One thing in the course of an iteration.
enum Turn {
    Begin(usize),
    Step(u64),
    End,
}

impl Flow {
    /// The step at a position; none: the iteration is over.
    #[inline]
    pub fn step(&self, at: u16) -> Option<u16> {
        let step = self.order[usize::from(at)];
        (step != END).then_some(step)
    }

    /// Number of steps after a position in the same iteration.
    #[cold]
    pub fn left_after(&self, at: u16) -> u16 {
        let rest = &self.order[usize::from(at) + 1..];
        rest.iter().take_while(|step| **step != END).count() as u16
    }

    /// The groups that begin with the request at a position, outer ones first.
    pub fn begun_at(&self, at: u16) -> &[u16] {
        let edges = self.edges.get(usize::from(at));
        edges.map_or(&[], |edges| &edges.begins)
    }

    /// Number of open groups that end with the request at a position.
    pub fn ended_at(&self, at: u16) -> usize {
        let edges = self.edges.get(usize::from(at));
        edges.map_or(0, |edges| usize::from(edges.ends))
    }

    /// The most groups that are open at once.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Appends a scenario whose first step is `first_step` of the stream; returns its first position.
    ///
    /// A fault leaves nothing behind.
    pub(super) fn append(
        &mut self,
        scenario: &Scenario,
        first_step: usize,
        at: &str,
        faults: &mut Vec<Fault>,
    ) -> u16 {
        let before = faults.len();
        let mut faults = Faults::new(faults, at);
        check(scenario, &mut faults);
        if faults.list().len() > before {
            return 0;
        }
        let begins = self.order.len();
        let length = length(0, scenario.steps.len() as u64, &scenario.groups);
        // One place for the END of each scenario.
        if length.saturating_add(begins as u64 + 1) > MAX_LENGTH {
            let what = format_args!(
                "{length} requests in one iteration, with those of the other scenarios more than {MAX_LENGTH}: \
                 repeat less and let users do more iterations"
            );
            faults.add("groups", what);
            return 0;
        }
        self.unroll(scenario, first_step as u64);
        self.order.push(END);
        begins as u16
    }

    fn unroll(&mut self, scenario: &Scenario, first_step: u64) {
        if !scenario.groups.is_empty() {
            self.edges.resize(self.order.len(), Edges::default());
        }
        let mut begun = Vec::new();
        let mut open = 0;
        unroll(
            0,
            scenario.steps.len() as u64,
            &scenario.groups,
            self.groups,
            &mut |turn| match turn {
                Turn::Begin(group) => {
                    begun.push(group as u16);
                    open += 1;
                    self.depth = self.depth.max(open);
                }
                Turn::Step(step) => {
                    self.order.push((first_step + step) as u16);
                    if !scenario.groups.is_empty() {
                        let begins = std::mem::take(&mut begun).into_boxed_slice();
                        self.edges.push(Edges { begins, ends: 0 });
                    }
                }
                Turn::End => {
                    open -= 1;
                    if let Some(last) = self.edges.last_mut() {
                        last.ends += 1;
                    }
                }
            },
        );
        self.groups += named(&scenario.groups);
    }
}

/// Number of groups that have a name; only these have times.
fn named(groups: &[Group]) -> usize {
    groups.iter().filter(|group| group.is_named()).count()
}

impl Group {
    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.steps)
    }

    /// Number of the following groups that lie within it.
    fn inner(&self, following: &[Group]) -> usize {
        following
            .iter()
            .take_while(|other| u64::from(other.first) < self.end())
            .count()
    }
}

/// Groups are in the order of their first steps, outer before inner, and none crosses another.
fn check(scenario: &Scenario, faults: &mut Faults) {
    let mut open: Vec<u64> = Vec::new();
    let mut last_first = 0;
    for (index, group) in scenario.groups.iter().enumerate() {
        let mut faults = faults.of(&format!("groups[{index}]"));
        let (end, steps) = (group.end(), scenario.steps.len());
        faults.want(group.repeat > 0, "repeat", "0: at least 1");
        let what = "0: a group has at least one step";
        faults.want(group.steps > 0, "steps", what);
        let what = format_args!("ends at step {end}, the scenario has {steps}");
        faults.want(end <= steps as u64, "steps", what);
        let what = "groups stand in the order of their first steps";
        faults.want(group.first >= last_first, "first", what);
        last_first = group.first;
        while open
            .last()
            .is_some_and(|end| *end <= u64::from(group.first))
        {
            open.pop();
        }
        let is_inside = open.last().is_none_or(|around| end <= *around);
        let what = "reaches beyond the group around it: groups nest";
        faults.want(is_inside, "steps", what);
        open.push(end);
        let depth = open.len();
        let what = format_args!("{depth} groups within each other, at most {MAX_DEPTH}");
        faults.want(depth <= MAX_DEPTH, "", what);
    }
}

fn length(first: u64, end: u64, groups: &[Group]) -> u64 {
    let mut total = end - first;
    let mut rest = groups;
    while let [group, following @ ..] = rest {
        let inner = group.inner(following);
        let once = length(u64::from(group.first), group.end(), &following[..inner]);
        total = (total - u64::from(group.steps))
            .saturating_add(once.saturating_mul(u64::from(group.repeat)));
        rest = &following[inner..];
    }
    total
}

/// The course of the steps from `first` to `end`; `number` is that of the first of `groups` in the stream.
fn unroll(first: u64, end: u64, groups: &[Group], mut number: usize, put: &mut impl FnMut(Turn)) {
    let mut at = first;
    let mut rest = groups;
    while let [group, following @ ..] = rest {
        (at..u64::from(group.first)).for_each(|step| put(Turn::Step(step)));
        let inner = group.inner(following);
        let within = number + usize::from(group.is_named());
        for _ in 0..group.repeat {
            if group.is_named() {
                put(Turn::Begin(number));
            }
            unroll(
                u64::from(group.first),
                group.end(),
                &following[..inner],
                within,
                put,
            );
            if group.is_named() {
                put(Turn::End);
            }
        }
        at = group.end();
        number = within + named(&following[..inner]);
        rest = &following[inner..];
    }
    (at..end).for_each(|step| put(Turn::Step(step)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Step;

    fn scenario(steps: usize, groups: &[(u16, u16, u32)]) -> Scenario {
        let step: Step =
            serde_json::from_value(serde_json::json!({"name": "a", "method": "GET", "path": "/"}))
                .unwrap();
        let group = |(index, (first, steps, repeat)): (usize, &(u16, u16, u32))| Group {
            name: format!("g{index}"),
            first: *first,
            steps: *steps,
            repeat: *repeat,
        };
        Scenario {
            name: "s".to_owned(),
            weight: 1.0,
            steps: vec![step; steps],
            groups: groups.iter().enumerate().map(group).collect(),
        }
    }

    fn order(steps: usize, groups: &[(u16, u16, u32)]) -> Vec<u16> {
        let mut flow = Flow::default();
        let mut faults = Vec::new();
        flow.append(&scenario(steps, groups), 0, "s", &mut faults);
        assert_eq!(faults, []);
        assert_eq!(flow.order.pop(), Some(END));
        flow.order
    }

    fn fault_of(steps: usize, groups: &[(u16, u16, u32)]) -> String {
        let mut flow = Flow::default();
        let mut faults = Vec::new();
        flow.append(&scenario(steps, groups), 0, "s", &mut faults);
        assert!(flow.order.is_empty());
        faults
            .iter()
            .map(Fault::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn groups_nest_and_repeat_as_written_out_by_hand() {
        assert_eq!(order(3, &[]), [0, 1, 2]);
        assert_eq!(order(3, &[(1, 1, 3)]), [0, 1, 1, 1, 2]);
        // a, 2 x (b, 2 x (c, 3 x d), e), f
        assert_eq!(
            order(6, &[(1, 4, 2), (2, 2, 2), (3, 1, 3)]),
            [0, 1, 2, 3, 3, 3, 2, 3, 3, 3, 4, 1, 2, 3, 3, 3, 2, 3, 3, 3, 4, 5]
        );
        // The same steps in two groups, and two groups side by side in one.
        assert_eq!(order(1, &[(0, 1, 2), (0, 1, 3)]), [0; 6]);
        assert_eq!(
            order(2, &[(0, 2, 2), (0, 1, 2), (1, 1, 1)]),
            [0, 0, 1, 0, 0, 1]
        );
    }

    #[test]
    fn scenarios_stand_one_after_the_other() {
        let mut flow = Flow::default();
        let mut faults = Vec::new();

        let first = flow.append(&scenario(1, &[(0, 1, 2)]), 0, "a", &mut faults);
        let second = flow.append(&scenario(2, &[]), 1, "b", &mut faults);

        assert_eq!((first, second), (0, 3));
        assert_eq!(flow.order, [0, 0, END, 1, 2, END]);
        assert_eq!(
            (flow.left_after(0), flow.left_after(1), flow.left_after(4)),
            (1, 0, 0)
        );
    }

    #[test]
    fn the_first_and_last_request_of_each_turn_of_a_group_are_known() {
        let mut flow = Flow::default();
        let mut faults = Vec::new();

        flow.append(&scenario(1, &[]), 0, "a", &mut faults);
        // x, 2 x (y, 2 x z): positions 2, then 3 4 5, then 6 7 8, behind the END of the first at 1.
        let nested = [(1, 2, 2), (2, 1, 2)];
        flow.append(&scenario(3, &nested), 1, "b", &mut faults);
        // The outer of two has no name: it only repeats.
        let mut unnamed = scenario(1, &[(0, 1, 2), (0, 1, 1)]);
        unnamed.groups[0].name.clear();
        flow.append(&unnamed, 4, "c", &mut faults);

        let begun: Vec<&[u16]> = (0..12).map(|at| flow.begun_at(at)).collect();
        let ended: Vec<usize> = (0..12).map(|at| flow.ended_at(at)).collect();
        let expected: [&[u16]; 12] = [
            &[],
            &[],
            &[],
            &[0],
            &[1],
            &[1],
            &[0],
            &[1],
            &[1],
            &[],
            &[2],
            &[2],
        ];
        assert_eq!(begun, expected);
        assert_eq!(ended, [0, 0, 0, 0, 1, 2, 0, 1, 2, 0, 1, 1]);
        assert_eq!(flow.depth(), 2);
    }

    #[test]
    fn a_bad_group_is_a_fault_at_its_place() {
        for (groups, part) in [
            (vec![(0, 2, 0)], "s.groups[0].repeat: 0: at least 1"),
            (vec![(0, 0, 1)], "s.groups[0].steps: 0"),
            (vec![(1, 3, 1)], "ends at step 4, the scenario has 3"),
            (
                vec![(0, 2, 1), (1, 2, 1)],
                "s.groups[1].steps: reaches beyond",
            ),
            (
                vec![(1, 1, 1), (0, 1, 1)],
                "s.groups[1].first: groups stand in the order",
            ),
            (
                vec![(0, 1, 70_000)],
                "s.groups: 70002 requests in one iteration",
            ),
            (vec![(0, 3, u32::MAX); 16], "requests in one iteration"),
            (
                vec![(0, 3, 1); 17],
                "17 groups within each other, at most 16",
            ),
        ] {
            let fault = fault_of(3, &groups);

            assert!(fault.contains(part), "{groups:?}: {fault}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Any groups at all: a fault, or an order as long as the counts say, in which every step occurs.
        #[test]
        fn any_groups_give_a_fault_or_an_order_of_the_right_length(
            steps in 1usize..6,
            groups in proptest::collection::vec((0u16..6, 0u16..6, 0u32..4), 0..6),
        ) {
            let scenario = scenario(steps, &groups);
            let mut flow = Flow::default();
            let mut faults = Vec::new();
            flow.append(&scenario, 0, "s", &mut faults);
            if faults.is_empty() {
                prop_assert_eq!(flow.order.len() as u64, length(0, steps as u64, &scenario.groups) + 1);
                // Each step as often as the product of the repeats of the groups around it.
                for step in 0..steps as u16 {
                    let around = scenario.groups.iter().filter(|g| (g.first..g.first + g.steps).contains(&step));
                    let times: usize = around.map(|g| g.repeat as usize).product();
                    prop_assert_eq!(flow.order.iter().filter(|s| **s == step).count(), times);
                }
            } else {
                prop_assert!(flow.order.is_empty());
            }
        }
    }
}
