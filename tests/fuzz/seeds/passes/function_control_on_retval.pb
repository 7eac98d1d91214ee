

inPlaceholder*
dtype0
E
callPartitionedCallin*

fR
f*
Tout
2*
Tin
2

useIdentitycall*
T0Œ
‰

f
x
y
innerIdentityx*
T0%
r_Retvalx*
T0*
index
kIdentityx^r*
T0"
y
k:output:0